// Names, ports, and the way to the root.
#include <fmt/format.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <system_error>

#include "base/clock.hpp"
#include "base/root_address.hpp"
#include "bootstrap/resolver.hpp"
#include "bootstrap/service.hpp"
#include "bootstrap/socket.hpp"
#include "cli/doctor/files.hpp"
#include "cli/doctor/probe.hpp"

namespace rondo::cli::doctor {
namespace {

using bootstrap::Address;

constexpr milliseconds name_patience{3000}, connection_patience{1500};

// As ranks do it. A name server that does not answer is left behind with its thread.
Result<std::vector<Address>> look_up(const std::string& host, uint16_t port) try {
  using Answer = Result<std::vector<Address>>;
  const auto answer = std::make_shared<std::promise<Answer>>();
  auto future = answer->get_future();
  bootstrap::resolve(bootstrap::Service::instance(), host, port,
                     [answer](const Answer& result) { answer->set_value(result); });
  if (future.wait_for(name_patience) == std::future_status::ready) return future.get();
  return Error{ErrorCode::timeout,
               fmt::format("the name {} cannot be resolved: no name server answers within {} s", host,
                           name_patience.count() / 1000)};
} catch (const std::system_error& error) {
  return Error{ErrorCode::system, fmt::format("the name {} cannot be resolved: {}", host, error.what())};
}

// A datagram socket that is "connected" sends nothing, but has been given a route.
std::optional<Ip> source_to(const Address& address) {
  const Descriptor socket(::socket(address.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address.data(), socklen_t(address.size())) != 0) return std::nullopt;
  return bootstrap::ip_of(bootstrap::local_address(socket.get()));
}

int error_of_connection(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

void knock(const Address& address, RootPath& path) {
  auto socket = bootstrap::make_socket(address);
  int error = EAFNOSUPPORT;
  if (socket) {
    error = ::connect(socket->get(), address.data(), socklen_t(address.size())) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd ready{socket->get(), POLLOUT, 0};
      error = ::poll(&ready, 1, int(connection_patience.count())) == 1 ? error_of_connection(socket->get())
                                                                       : ETIMEDOUT;
    }
  }
  if (error == 0)
    path.reply = Reply::listening;
  else if (error == ECONNREFUSED)
    path.reply = Reply::refused;
  else if (error != ETIMEDOUT)
    path.reply = Reply::unreachable;
  path.error = error == 0 ? "" : std::strerror(error);
}

bool is_free(uint16_t port) {
  const auto any = bootstrap::tcp_address(asio::ip::address_v6::any(), port);
  const bool has_v6 = bootstrap::make_socket(any).ok();
  return bootstrap::listen_on(has_v6 ? any : bootstrap::tcp_address(asio::ip::address_v4::any(), port)).ok();
}

}  // namespace

HostName probe_host() {
  char name[HOST_NAME_MAX + 1] = {};
  HostName host;
  if (::gethostname(name, sizeof name - 1) != 0) return {"?", {}, std::strerror(errno)};
  host.name = name;
  const auto addresses = look_up(host.name, 1);
  if (!addresses) {
    const std::string& text = addresses.error().message;
    const size_t reason = text.rfind(": ");
    host.error = reason == text.npos ? text : text.substr(reason + 2);
    return host;
  }
  for (const Address& address : *addresses) {
    const Ip ip = bootstrap::ip_of(address);
    if (std::ranges::find(host.addresses, ip) == host.addresses.end()) host.addresses.push_back(ip);
  }
  return host;
}

Ports probe_ports(const std::string& root, const Lookup& lookup) {
  Ports ports;
  unsigned first = 0, last = 0;
  const std::string range = content(root + "/proc/sys/net/ipv4/ip_local_port_range");
  if (std::sscanf(range.c_str(), "%u %u", &first, &last) == 2 && first <= last && last <= 65535)
    ports.ephemeral = {uint16_t(first), uint16_t(last)};
  const auto text = lookup("RONDO_PORTS");
  const auto wanted = text ? parse_ports(*text) : Result<PortRange>(PortRange{});
  if (!text || !wanted) return ports;
  ports.wanted = *wanted;
  for (uint32_t port = wanted->first; port <= wanted->last; ++port)
    if (!is_free(uint16_t(port))) ports.not_free.push_back(uint16_t(port));
  return ports;
}

Root probe_root(const std::string& text) {
  Root found;
  const auto root = parse_root(text);
  if (!root || root->kind != RootAddress::Kind::tcp) return found;
  const auto addresses = look_up(root->name, root->port);
  if (!addresses) {
    found.name_error = addresses.error().message;
    return found;
  }
  for (const Address& address : *addresses) {
    RootPath path{bootstrap::ip_of(address), source_to(address), Reply::silent, ""};
    const bool known = std::ranges::find(found.paths, path.ip, &RootPath::ip) != found.paths.end();
    if (known || found.paths.size() == 4) continue;
    knock(address, path);
    found.paths.push_back(path);
  }
  return found;
}

}  // namespace rondo::cli::doctor
