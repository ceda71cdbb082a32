#include "bootstrap/socket.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <asio/ip/tcp.hpp>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/limits.hpp"
#include "base/root_address.hpp"

namespace rondo::bootstrap {
namespace {

Error refusal(std::string_view action, const Address& address) {
  const int cause = errno;
  std::string text = fmt::format("cannot {} {}: {}", action, to_text(address), std::strerror(cause));
  if (cause == EADDRINUSE)
    text +=
        "; another process uses it (a second job with this root, or a second rank 0?): "
        "give each job its own, or use unix:@name";
  if (cause == EADDRNOTAVAIL) text += "; it is not an address of this machine, where rank 0 runs";
  if (cause == EMFILE || cause == ENFILE) text += limit_behind(cause);
  return {ErrorCode::system, std::move(text)};
}

void set(int socket, int level, int option) {
  const int on = 1;
  // Can only fail for a wrong descriptor or option.
  [[maybe_unused]] const int result = ::setsockopt(socket, level, option, &on, sizeof(on));
  assert(result == 0);
}

template <class Get>
Address address_from(int socket, Get get) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (get(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return Address(&storage, std::min(size_t(size), sizeof(storage)));
}

asio::ip::tcp::endpoint to_tcp(const Address& address) {
  asio::ip::tcp::endpoint tcp;
  if (is_tcp(address)) {
    tcp = address.data()->sa_family == AF_INET6 ? asio::ip::tcp::endpoint(asio::ip::tcp::v6(), 0) : tcp;
    std::memcpy(tcp.data(), address.data(), std::min(address.size(), tcp.capacity()));
  }
  return tcp;
}

}  // namespace

Address tcp_address(const asio::ip::address& ip, uint16_t port) { return asio::ip::tcp::endpoint(ip, port); }

Address unix_address(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  assert(name.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return Address(&address, offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool is_tcp(const Address& address) {
  const auto family = address.data()->sa_family;
  return family == AF_INET || family == AF_INET6;
}

asio::ip::address ip_of(const Address& address) {
  const auto ip = to_tcp(address).address();
  if (ip.is_v6() && ip.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, ip.to_v6());
  return ip;
}

uint16_t port_of(const Address& address) { return to_tcp(address).port(); }

bool is_local(const Address& address) { return !is_tcp(address) || ip_of(address).is_loopback(); }

bool same_user(int socket) noexcept {
  int family = 0;
  socklen_t size = sizeof(family);
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) return false;
  if (family != AF_UNIX) return true;
  ucred peer{};
  size = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

std::string to_text(const Address& address) {
  if (is_tcp(address)) return join_host_port(ip_of(address).to_string(), port_of(address));
  const size_t head = offsetof(sockaddr_un, sun_path) + 1;
  if (address.size() <= head) return "a Unix socket of this machine";
  const auto* bytes = reinterpret_cast<const char*>(address.data());
  return "unix:@" + std::string(bytes + head, address.size() - head);
}

DataAddress to_wire(const Address& address) {
  DataAddress wire;
  if (!is_tcp(address)) return wire;
  const auto ip = ip_of(address);
  wire.family = ip.is_v4() ? 4 : 6;
  wire.port = port_of(address);
  if (ip.is_v4()) {
    const auto bytes = ip.to_v4().to_bytes();
    std::memcpy(wire.ip.data(), bytes.data(), bytes.size());
  } else {
    const auto bytes = ip.to_v6().to_bytes();
    std::memcpy(wire.ip.data(), bytes.data(), bytes.size());
  }
  return wire;
}

Address from_wire(const DataAddress& wire, uint32_t scope) {
  if (wire.family == 4) {
    asio::ip::address_v4::bytes_type bytes;
    std::memcpy(bytes.data(), wire.ip.data(), bytes.size());
    return tcp_address(asio::ip::address_v4(bytes), wire.port);
  }
  asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), wire.ip.data(), bytes.size());
  asio::ip::address_v6 ip(bytes);
  if (ip.is_link_local()) ip.scope_id(scope);
  return tcp_address(ip, wire.port);
}

Address local_address(int socket) { return address_from(socket, ::getsockname); }
Address remote_address(int socket) { return address_from(socket, ::getpeername); }

Result<Descriptor> make_socket(const Address& address) {
  Descriptor socket(::socket(address.data()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return refusal("make a socket for", address);
  if (!is_tcp(address)) return socket;
  set(socket.get(), IPPROTO_TCP, TCP_NODELAY);
  // For those who dial, too: a connection that was given a root's port as its own, or one of an earlier job
  // that lingers in TIME_WAIT, must not keep the listener out.
  set(socket.get(), SOL_SOCKET, SO_REUSEADDR);
  return socket;
}

Result<Descriptor> listen_on(const Address& address, int* cause) {
  auto socket = make_socket(address);
  if (!socket) {
    if (cause) *cause = errno;
    return socket;
  }
  if (::bind(socket->get(), address.data(), socklen_t(address.size())) == 0 &&
      ::listen(socket->get(), 4096) == 0)
    return socket;
  if (cause) *cause = errno;
  return refusal("listen on", address);
}

Result<Descriptor> listen_within(const asio::ip::address& ip, const PortRange& ports, uint32_t start) {
  for (uint32_t i = 0; i < ports.size(); ++i) {
    int cause = 0;
    const auto port = uint16_t(ports.first + (start + i) % ports.size());
    auto socket = listen_on(tcp_address(ip, port), &cause);
    if (socket || cause != EADDRINUSE) return socket;
  }
  return Error{
      ErrorCode::system,
      fmt::format("all ports from {} to {} of {} are in use: RONDO_PORTS needs one for each rank of a "
                  "machine, and as many again and one more for each communicator made by split or shrink",
                  ports.first, ports.last, ip.to_string())};
}

Result<Descriptor> listen_on_loopback() {
  auto socket = listen_on(tcp_address(asio::ip::address_v4::loopback(), 0));
  if (socket) return socket;
  auto other = listen_on(tcp_address(asio::ip::address_v6::loopback(), 0));
  return other ? std::move(other) : std::move(socket);
}

Descriptor accept_from(int listener) noexcept {
  Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    // Fails, harmlessly, for Unix sockets.
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return socket;
}

Socket adopt(asio::io_context& context, Descriptor descriptor, const Address& address) {
  Socket socket(context);
  asio::error_code error;
  socket.assign(address.protocol(), descriptor.get(), error);
  if (!error) descriptor.release();
  return socket;  // not open when epoll refused the descriptor (its watch limit)
}

Moved read_some(Socket& socket, std::span<std::byte> into) noexcept {
  iovec part{into.data(), into.size()};
  return socket.tls ? socket.tls->read(std::span(&part, 1))
                    : rondo::read_some(socket.native_handle(), std::span(&part, 1));
}

Moved write_some(Socket& socket, std::span<const std::byte> from) noexcept {
  iovec part{const_cast<std::byte*>(from.data()), from.size()};
  return socket.tls ? socket.tls->write(std::span(&part, 1))
                    : rondo::write_some(socket.native_handle(), std::span(&part, 1));
}

Stream release(Socket socket) noexcept {
  asio::error_code ignored;
  return {Descriptor(socket.release(ignored)), std::move(socket.tls)};
}

bool send_now(Socket& socket, std::span<const std::byte> data) noexcept {
  while (!data.empty()) {
    const ssize_t sent =
        ::send(socket.native_handle(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data = data.subspan(size_t(sent));
  }
  return true;
}

}  // namespace rondo::bootstrap
