// Stream sockets of three families (IPv4, IPv6, abstract Unix) under one type. Every descriptor made here is
// non-blocking and closed on exec; TCP ones have Nagle's delay off.
#pragma once
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/port_range.hpp"
#include "base/stream.hpp"
#include "bootstrap/wire.hpp"
#include "rondo/result.hpp"

namespace rondo::bootstrap {

/// With the TLS session that all its bytes go through once it has been secured (secure.hpp); then asio's own reads and
/// writes are not for it.
struct Socket : asio::generic::stream_protocol::socket {
  using asio::generic::stream_protocol::socket::socket;
  std::unique_ptr<tls::Session> tls;
};
using Address = asio::generic::stream_protocol::endpoint;

Address tcp_address(const asio::ip::address& ip, uint16_t port);
Address unix_address(std::string_view abstract_name);
/// The IP of a TCP address (an IPv4 address in IPv6 clothes comes out as IPv4); unspecified for Unix sockets.
asio::ip::address ip_of(const Address& address);
uint16_t port_of(const Address& address);
bool is_tcp(const Address& address);
/// Only this machine can be at the other end.
bool is_local(const Address& address);
/// The other end of a Unix socket is a process of this user; true for TCP, where nobody can tell.
bool same_user(int socket) noexcept;
std::string to_text(const Address& address);

DataAddress to_wire(const Address& address);
/// `scope` is used for link-local IPv6 addresses, whose scope means something on one machine only.
Address from_wire(const DataAddress& address, uint32_t scope);

Address local_address(int socket);
Address remote_address(int socket);

/// Errors: system; "address in use" says what to do. `cause`, where given, receives errno.
Result<Descriptor> listen_on(const Address& address, int* cause = nullptr);
/// At the first free port of the range, beginning at `start` ports into it, so that ranks seldom collide.
Result<Descriptor> listen_within(const asio::ip::address& ip, const PortRange& ports, uint32_t start);
/// At an ephemeral port of 127.0.0.1, or of ::1 where there is no IPv4.
Result<Descriptor> listen_on_loopback();
/// The next waiting connection, or none and errno.
Descriptor accept_from(int listener) noexcept;
Result<Descriptor> make_socket(const Address& address);
/// Takes the descriptor over.
Socket adopt(asio::io_context& context, Descriptor descriptor, const Address& address);
/// What goes without blocking, through the TLS session if there is one.
Moved read_some(Socket& socket, std::span<std::byte> into) noexcept;
Moved write_some(Socket& socket, std::span<const std::byte> from) noexcept;
/// Takes the socket out of asio's hands; nothing may be pending on it.
Stream release(Socket socket) noexcept;
/// As much as goes without blocking; false: not all of it. Before the socket is secured.
bool send_now(Socket& socket, std::span<const std::byte> data) noexcept;

}  // namespace rondo::bootstrap
