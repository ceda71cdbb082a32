#include "base/advertised.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/root_address.hpp"

namespace rondo {
namespace {

struct Numeric {
  int family;
  in6_addr bytes;  // IPv4: the first four
};

std::optional<Numeric> numeric(const std::string& ip) noexcept {
  Numeric result{AF_INET, {}};
  if (::inet_pton(AF_INET, ip.c_str(), &result.bytes) == 1) return result;
  result.family = AF_INET6;
  if (::inet_pton(AF_INET6, ip.c_str(), &result.bytes) == 1) return result;
  return std::nullopt;
}

bool is_unspecified(const Numeric& ip) noexcept {
  return IN6_IS_ADDR_UNSPECIFIED(&ip.bytes);  // the rest of an IPv4 address is zero anyway
}

Error bad(std::string_view why) { return {ErrorCode::invalid_argument, std::string(why)}; }

constexpr std::string_view allowed_advertised =
    "must be this rank's numeric address as the other ranks see it, with a port or without: 203.0.113.5, "
    "203.0.113.5:45000, 2001:db8::5 or [2001:db8::5]:45000";
constexpr std::string_view allowed_listen =
    "must be a numeric address of rank 0's machine and a port, such as 10.0.0.5:29700, 0.0.0.0:29700 or "
    "[::]:29700";

}  // namespace

Result<Advertised> parse_advertised(std::string_view text, const PortRange& ports) {
  if (text.empty()) return Advertised{};
  const auto colons = std::count(text.begin(), text.end(), ':');
  const bool bracket = text.front() == '[', has_port = bracket ? text.back() != ']' : colons == 1;
  Advertised advertised{std::string(text), 0};
  if (has_port) {
    const auto parts = parse_root(text);
    if (!parts || parts->kind != RootAddress::Kind::tcp) return bad(allowed_advertised);
    advertised = {parts->name, parts->port};
  } else if (bracket) {
    advertised.ip = text.substr(1, text.size() - 2);
  }
  const auto ip = numeric(advertised.ip);
  if (!ip || is_unspecified(*ip) || (bracket && ip->family != AF_INET6)) return bad(allowed_advertised);
  if (!has_port) return advertised;
  if (ports.first == 0)
    return bad(
        "a port stands for the first one of RONDO_PORTS, which is not set: set it to where this rank "
        "listens");
  if (advertised.port + ports.size() - 1 > 65535)
    return bad("the ports from there on end at 65535, and RONDO_PORTS has more");
  return advertised;
}

uint16_t advertised_port(const Advertised& advertised, const PortRange& ports, uint16_t bound) noexcept {
  return advertised.port == 0 ? bound : uint16_t(advertised.port + (bound - ports.first));
}

Result<ListenAddress> parse_listen(std::string_view text) {
  if (text.empty()) return ListenAddress{};
  const auto parts = parse_root(text);
  if (!parts || parts->kind != RootAddress::Kind::tcp || !numeric(parts->name)) return bad(allowed_listen);
  return ListenAddress{parts->name, parts->port};
}

bool is_loopback(const std::string& text) noexcept {
  const auto ip = numeric(text);
  if (!ip) return false;
  if (ip->family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&ip->bytes);
  return ip->bytes.s6_addr[0] == 127;
}

}  // namespace rondo
