// Where rank 0 is found: the value of RONDO_ROOT, taken apart.
#pragma once
#include <string>
#include <string_view>

#include "rondo/result.hpp"

namespace rondo {

struct RootAddress {
  enum class Kind : uint8_t { tcp, abstract_unix, file };
  Kind kind = Kind::tcp;
  std::string name;  // tcp: host name or numeric address, without brackets; unix: without '@'; file: the path
  uint16_t port = 0;  // tcp only
};

/// "host:port", "[IPv6]:port", "unix:@name" or "file:/path". Errors: invalid_argument, saying what is
/// allowed.
Result<RootAddress> parse_root(std::string_view text);
std::string to_string(const RootAddress& root);
/// "host:port", with brackets where `host` is a numeric IPv6 address.
std::string join_host_port(std::string_view host, uint16_t port);

}  // namespace rondo
