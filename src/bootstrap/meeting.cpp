#include "bootstrap/meeting.hpp"

#include <fmt/format.h>

#include "base/random.hpp"
#include "bootstrap/resolver.hpp"
#include "bootstrap/socket.hpp"
#include "bootstrap/star.hpp"

namespace rondo::bootstrap {
namespace {

// Rank 0 whose root is a name: what the name means differs between machines, so it listens everywhere.
asio::ip::address everywhere() {
  const asio::ip::address six = asio::ip::address_v6::any();
  if (make_socket(tcp_address(six, 0))) return six;
  return asio::ip::address_v4::any();
}

}  // namespace

Result<Meeting> open_meeting(const StarSetup& old, const asio::ip::address& own) {
  Meeting meeting;
  meeting.tag = random_number() | 1;
  Result<Descriptor> listener = Descriptor();
  if (old.root.kind == RootAddress::Kind::abstract_unix) {
    const std::string name = fmt::format("rondo-{:016x}", random_number());
    listener = listen_on(unix_address(name));
    meeting.root = "unix:@" + name;
  } else if (one_machine(old)) {
    listener = listen_on_loopback();
    if (listener) meeting.root = to_text(local_address(listener->get()));
  } else {
    asio::ip::address ip = own;
    if (old.rank == 0) ip = is_numeric(old.root.name) ? asio::ip::make_address(old.root.name) : everywhere();
    listener = listen_within(ip, old.ports, old.rank);
    const std::string host = old.rank == 0 ? old.root.name : ip.to_string();
    if (listener) meeting.root = join_host_port(host, port_of(local_address(listener->get())));
  }
  if (!listener) return listener.error();
  meeting.listener = std::make_shared<Descriptor>(std::move(*listener));
  return meeting;
}

}  // namespace rondo::bootstrap
