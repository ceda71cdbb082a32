// RONDO_ADVERTISE and RONDO_LISTEN: addresses that differ on the two sides of a network that translates them (NAT).
#pragma once
#include <string>
#include <string_view>

#include "base/port_range.hpp"
#include "rondo/result.hpp"

namespace rondo {

/// Where a rank's listener is, as the other ranks see it.
struct Advertised {
  std::string ip;     // numeric, without brackets; empty: where it listens
  uint16_t port = 0;  // of the listener at the first port of RONDO_PORTS; 0: the port at which it listens
};

/// "IP", "IP:PORT", "[IPv6]:PORT" or, empty, nothing. Errors: invalid_argument, saying what is allowed.
Result<Advertised> parse_advertised(std::string_view text, const PortRange& ports);
/// The port that the others dial for a listener at `bound`.
uint16_t advertised_port(const Advertised& advertised, const PortRange& ports, uint16_t bound) noexcept;

struct ListenAddress {
  std::string ip;  // empty: at the root
  uint16_t port = 0;
};
/// "IP:PORT", "[IPv6]:PORT" or, empty, nothing. Errors: invalid_argument, saying what is allowed.
Result<ListenAddress> parse_listen(std::string_view text);

/// Of a numeric address.
bool is_loopback(const std::string& ip) noexcept;

}  // namespace rondo
