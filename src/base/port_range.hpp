// RONDO_PORTS: "45000-45010", or one port.
#pragma once
#include <cstdint>
#include <string_view>

#include "rondo/result.hpp"

namespace rondo {

struct PortRange {
  uint16_t first = 0, last = 0;  // 0: whichever the kernel gives
  uint32_t size() const { return uint32_t(last - first) + 1; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

/// Empty text: any port. Errors: invalid_argument, saying what is allowed.
Result<PortRange> parse_ports(std::string_view text);

}  // namespace rondo
