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

asio::ip::address where_root_listens(const StarSetup& old) {
  if (!old.listen.ip.empty()) return asio::ip::make_address(old.listen.ip);
  // The root is then what the others see, and may be no address of this machine.
  if (!old.advertised.ip.empty() || !is_numeric(old.root.name)) return everywhere();
  return asio::ip::make_address(old.root.name);
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
    if (old.rank == 0) ip = where_root_listens(old);
    listener = listen_within(ip, old.ports, old.rank);
    if (listener) {
      const Address seen = as_others_see(old, local_address(listener->get()));
      meeting.root = join_host_port(old.rank == 0 ? old.root.name : ip_of(seen).to_string(), port_of(seen));
    }
  }
  if (!listener) return listener.error();
  meeting.listener = std::make_shared<Descriptor>(std::move(*listener));
  return meeting;
}

}  // namespace rondo::bootstrap
