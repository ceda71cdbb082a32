#include "base/root_address.hpp"

#include <fmt/format.h>

#include <charconv>

namespace rondo {
namespace {

// sun_path holds 108 bytes, the first of which is the zero of an abstract name.
constexpr size_t longest_unix_name = 107;
constexpr size_t longest_host_name = 255;

Error not_a_root(std::string_view why) {
  return {ErrorCode::invalid_argument,
          fmt::format("{}; allowed are host:port, [IPv6]:port, unix:@name and file:/path", why)};
}

Result<RootAddress> parse_unix(std::string_view name) {
  if (name.size() < 2 || name.front() != '@')
    return not_a_root("a Unix socket needs a name that begins with @");
  name.remove_prefix(1);
  if (name.size() > longest_unix_name || name.find('\0') != name.npos)
    return not_a_root(fmt::format("the name of a Unix socket has at most {} characters", longest_unix_name));
  return RootAddress{RootAddress::Kind::abstract_unix, std::string(name), 0};
}

Result<RootAddress> parse_file(std::string_view path) {
  if (path.empty() || path.front() != '/') return not_a_root("a file needs an absolute path");
  return RootAddress{RootAddress::Kind::file, std::string(path), 0};
}

Result<RootAddress> parse_tcp(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return not_a_root("the port is missing");
  std::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') return not_a_root("the bracket is not closed");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return not_a_root("an IPv6 address needs brackets");
  }
  if (host.empty() || host.size() > longest_host_name) return not_a_root("the host is missing or too long");
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0)
    return not_a_root("the port must be a number from 1 to 65535");
  return RootAddress{RootAddress::Kind::tcp, std::string(host), port};
}

}  // namespace

Result<RootAddress> parse_root(std::string_view text) {
  if (text.substr(0, 5) == "unix:") return parse_unix(text.substr(5));
  if (text.substr(0, 5) == "file:") return parse_file(text.substr(5));
  return parse_tcp(text);
}

std::string join_host_port(std::string_view host, uint16_t port) {
  const bool brackets = host.find(':') != host.npos && host.front() != '[';
  return brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string to_string(const RootAddress& root) {
  switch (root.kind) {
    case RootAddress::Kind::tcp:
      return join_host_port(root.name, root.port);
    case RootAddress::Kind::abstract_unix:
      return "unix:@" + root.name;
    case RootAddress::Kind::file:
      return "file:" + root.name;
  }
  return {};
}

}  // namespace rondo
