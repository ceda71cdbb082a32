// Joining, failing, leaving and connecting, with ranks as threads.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>

#include <fstream>

#include "fleet.hpp"
#include "tests/skip.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

void check_every_connection(std::vector<Seat>& seats) {
  for (size_t a = 0; a < seats.size(); ++a)
    for (size_t b = 0; b < seats.size(); ++b)
      // Asked for by both, by the lower only, or by the higher only.
      if (a != b && ((a + b) % 3 == 0 || (a < b) == ((a + b) % 3 == 1))) seats[a].job->connect(Rank(b), 0);
  for (Rank a = 0; a < seats.size(); ++a)
    for (Rank b = a + 1; b < seats.size(); ++b)
      check_talk(seats[a].handler->socket({b, 0}), seats[b].handler->socket({a, 0}), char('a' + a));
}

// An IPv4 address of this machine that is not loopback, or nothing.
std::string network_address() {
  ifaddrs* list = nullptr;
  std::string found;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* item = list; item; item = item->ifa_next)
    if (item->ifa_addr && item->ifa_addr->sa_family == AF_INET && !(item->ifa_flags & IFF_LOOPBACK))
      found = bootstrap::ip_of(bootstrap::Address(item->ifa_addr, sizeof(sockaddr_in))).to_string();
  ::freeifaddrs(list);
  return found;
}

// This machine's name, or nothing if it has no address.
std::string own_name() {
  char name[256] = "";
  addrinfo* list = nullptr;
  if (::gethostname(name, sizeof(name) - 1) != 0 || ::getaddrinfo(name, nullptr, nullptr, &list) != 0)
    return {};
  ::freeaddrinfo(list);
  return name;
}

}  // namespace

TEST_CASE("job: a world of one opens no socket") {
  const auto service = bootstrap::Service::instance();
  const auto before = open_descriptors();
  Seat seat;
  Options options = options_for(0, 1, "");
  join(seat, options);
  REQUIRE(seat.job);
  CHECK(seat.job->local_world() == 1);
  CHECK(open_descriptors() == before);
  seat.job->announce({ErrorCode::aborted, "nobody hears this"});
  seat.job->connect(0, 0);
  CHECK(seat.handler->link_error({0, 0})->code == ErrorCode::invalid_argument);
}

TEST_CASE("job: ranks meet over every kind of root and connect both ways") {
  std::string root, secret = "the secret of this test";
  SUBCASE("tcp over IPv4") { root = "127.0.0.1:" + std::to_string(free_port()); }
  SUBCASE("a name") { root = "localhost:" + std::to_string(free_port()); }
  SUBCASE("an abstract Unix socket") { root = unix_root(); }
  SUBCASE("without a secret") {
    root = "localhost:" + std::to_string(free_port());
    secret.clear();
  }
  for (const uint32_t world : {2u, 3u, 5u, 9u}) {
    std::vector<Options> options;
    for (Rank rank = 0; rank < world; ++rank) {
      options.push_back(options_for(rank, world, root));
      options.back().secret = secret;
    }
    auto seats = join_all(options);
    check_joined(seats);
    check_every_connection(seats);
  }
}

TEST_CASE("job: over IPv6") {
  if (!has_ipv6()) SKIP_TEST("no IPv6 loopback on this machine");
  auto seats = join_all(3, "[::1]:" + std::to_string(free_port()));
  check_joined(seats);
  check_every_connection(seats);
}

TEST_CASE("job: over a file, also when a crashed run left one behind") {
  char directory[] = "/tmp/rondo-test-XXXXXX";
  REQUIRE(::mkdtemp(directory));
  const std::string path = std::string(directory) + "/root";
  std::string left_behind;
  SUBCASE("new") {}
  // A pid that cannot exist, and this process under another start time: its port may have any owner by now.
  SUBCASE("of a process that is gone") { left_behind = "4194305 1"; }
  SUBCASE("of a pid that is used again") { left_behind = std::to_string(::getpid()) + " 1"; }
  if (!left_behind.empty()) {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat status {};
    ::stat("/proc/self/ns/pid", &status);
    std::ofstream(path) << "rondo-root 1\n127.0.0.1 " << free_port() << "\n77\n"
                        << boot << ' ' << status.st_ino << ' ' << left_behind << '\n';
  }
  auto seats = join_all(3, "file:" + path);
  check_joined(seats);
  check_every_connection(seats);
  CHECK(::access(path.c_str(), F_OK) != 0);
  seats.clear();
  CHECK(::rmdir(directory) == 0);  // nothing else was left in it
}

TEST_CASE("job: a root file of somebody else is neither used nor overwritten") {
  char path[] = "/tmp/rondo-test-XXXXXX";
  ::close(::mkstemp(path));
  std::ofstream(path) << "precious\n";
  Seat seat;
  join(seat, options_for(0, 2, std::string("file:") + path));
  REQUIRE(seat.error);
  CHECK(contains(seat.error->message, "not a root file"));
  std::string content;
  std::ifstream(path) >> content;
  CHECK(content == "precious");
  ::unlink(path);
}

TEST_CASE("job: rank 0 may come last") {
  const std::string root = "127.0.0.1:" + std::to_string(free_port());
  Seat late, early;
  std::thread thread([&] { join(early, options_for(1, 2, root)); });
  std::this_thread::sleep_for(milliseconds(300));
  join(late, options_for(0, 2, root));
  thread.join();
  REQUIRE(late.job);
  REQUIRE(early.job);
  CHECK(late.took.count() < 1.0);
}

TEST_CASE("job: connections are ready for the hot path") {
  auto seats = up(2);
  seats[1].job->connect(0, 7);
  const int socket = seats[0].handler->socket({1, 7}), other = seats[1].handler->socket({0, 7});
  for (const int fd : {socket, other}) {
    REQUIRE(fd >= 0);
    CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    int no_delay = 0;
    socklen_t size = sizeof(no_delay);
    ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
    CHECK(no_delay == 1);
  }
}

TEST_CASE("job: lanes are connections of their own, and asking twice gives one") {
  auto seats = up(3);
  for (int i = 0; i < 3; ++i)
    for (const uint16_t lane : {uint16_t(0), uint16_t(1), uint16_t(65533)}) {
      seats[2].job->connect(0, lane);
      seats[0].job->connect(2, lane);
    }
  for (const uint16_t lane : {uint16_t(0), uint16_t(1), uint16_t(65533)})
    check_talk(seats[0].handler->socket({2, lane}), seats[2].handler->socket({0, lane}),
               char('a' + lane % 20));
  std::this_thread::sleep_for(milliseconds(100));
  CHECK(seats[0].handler->calls({2, 0}) == 1);
  CHECK(seats[2].handler->calls({0, 0}) == 1);
}

TEST_CASE("job: missing ranks are named, exactly, at the deadline, to every rank that joined") {
  const std::string root = unix_root();
  auto seats =
      join_all({options_for(0, 5, root, 1.0), options_for(2, 5, root, 1.0), options_for(4, 5, root, 30.0)});
  for (Seat& seat : seats) {
    REQUIRE(seat.error);
    CHECK(seat.error->code == ErrorCode::timeout);
    CHECK(seat.error->peer == 1u);
    CHECK(contains(seat.error->message, "ranks 1 and 3 of 5 did not join within 1.0 s"));
    CHECK(seat.took.count() > 0.9);
    CHECK(seat.took.count() < 1.5);
  }
}

TEST_CASE("job: the rank with the least patience ends the wait for all") {
  const std::string root = unix_root();
  auto seats = join_all({options_for(0, 3, root, 30.0), options_for(1, 3, root, 0.5)});
  for (Seat& seat : seats) {
    REQUIRE(seat.error);
    CHECK(
        contains(seat.error->message, "rank 2 of 3 did not join within 0.5 s (the init timeout of rank 1)"));
    CHECK(seat.took.count() < 1.0);
  }
}

TEST_CASE("job: without rank 0 the others say where they looked for it") {
  for (const std::string& root : {unix_root(), "127.0.0.1:" + std::to_string(free_port()),
                                  std::string("file:/tmp/rondo-test-no-such-root")}) {
    Seat seat;
    join(seat, options_for(1, 2, root, 0.4));
    REQUIRE(seat.error);
    CHECK(seat.error->code == ErrorCode::timeout);
    CHECK(seat.error->peer == 0u);
    CHECK(contains(seat.error->message, "rank 0 did not answer at " + root + " within 0.4 s"));
    CHECK(seat.took.count() < 0.9);
  }
}

TEST_CASE("job: two processes of one rank are both told") {
  const std::string root = unix_root();
  auto seats = join_all({options_for(0, 4, root), options_for(1, 4, root), options_for(1, 4, root)});
  for (Seat& seat : seats) {
    REQUIRE(seat.error);
    CHECK(seat.error->code == ErrorCode::invalid_argument);
    CHECK(contains(seat.error->message, "two processes claim rank 1: pid"));
    CHECK(seat.took.count() < 2.0);
  }
}

TEST_CASE("job: different world sizes are told to both sides") {
  const std::string root = unix_root();
  auto seats = join_all({options_for(0, 3, root), options_for(1, 4, root)});
  for (Seat& seat : seats) {
    REQUIRE(seat.error);
    CAPTURE(seat.error->message);
    CHECK(seat.error->code == ErrorCode::invalid_argument);
    CHECK(contains(seat.error->message, "rank 1 (pid"));
    CHECK(contains(seat.error->message, "as one of 4 ranks, rank 0 (pid"));
    CHECK(contains(seat.error->message, "as one of 3"));
  }
}

TEST_CASE("job: an address in use is an error that says what to do") {
  auto holder = bootstrap::listen_on(bootstrap::tcp_address(asio::ip::address_v4::loopback(), 0));
  REQUIRE(holder.ok());
  const auto port = bootstrap::port_of(bootstrap::local_address(holder->get()));
  Seat seat;
  join(seat, options_for(0, 2, "127.0.0.1:" + std::to_string(port)));
  REQUIRE(seat.error);
  CHECK(seat.error->code == ErrorCode::system);
  CHECK(contains(seat.error->message, "127.0.0.1:" + std::to_string(port)));
  CHECK(contains(seat.error->message, "another process uses it"));
  CHECK(seat.took.count() < 2.0);
}

TEST_CASE("job: a connection that lingers at the root's port does not keep rank 0 out") {
  const auto target = bootstrap::listen_on_loopback();
  REQUIRE(target.ok());
  const auto port = free_port();
  const auto here = bootstrap::tcp_address(asio::ip::address_v4::loopback(), port);
  const auto there = bootstrap::local_address(target->get());
  {
    const auto dialled = bootstrap::make_socket(here);
    REQUIRE(dialled.ok());
    REQUIRE(::bind(dialled->get(), here.data(), socklen_t(here.size())) == 0);
    ::connect(dialled->get(), there.data(), socklen_t(there.size()));
    pollfd accepted{target->get(), POLLIN, 0};
    REQUIRE(::poll(&accepted, 1, 5000) == 1);
    CHECK(bootstrap::listen_on(here).ok());  // while it lives
    ::shutdown(dialled->get(), SHUT_WR);     // first: TIME_WAIT is on this side
    CHECK(bool(bootstrap::accept_from(target->get())));
  }
  CHECK(bootstrap::listen_on(here).ok());
}

TEST_CASE("job: without a secret other machines are out of bounds") {
  for (const Rank rank : {0u, 1u}) {
    Options options = options_for(rank, 2, "192.0.2.2:4444", 5);
    options.secret.clear();
    Seat seat;
    join(seat, options);
    REQUIRE(seat.error);
    CHECK(seat.error->code == ErrorCode::invalid_argument);
    CHECK(contains(seat.error->message, "RONDO_SECRET"));
    CHECK(contains(seat.error->message, "192.0.2.2:4444"));
    CHECK(seat.took.count() < 1.0);
  }
}

TEST_CASE(
    "job: ranks that reached rank 0 over loopback and over the network are told that they cannot meet") {
  if (network_address().empty() || own_name().empty()) SKIP_TEST("no network address with a name");
  // A name makes rank 0 listen everywhere; this machine's own, as a number, is the nearest to another
  // machine.
  const std::string port = ":" + std::to_string(free_port());
  auto seats = join_all({options_for(0, 3, own_name() + port), options_for(1, 3, "127.0.0.1" + port),
                         options_for(2, 3, network_address() + port)});
  for (Seat& seat : seats) {
    REQUIRE(seat.error);
    CAPTURE(seat.error->message);
    CHECK(seat.error->code == ErrorCode::invalid_argument);
    CHECK(contains(seat.error->message, "rank 1 (pid"));
    CHECK(contains(seat.error->message, "rank 2 (pid"));
  }
}

TEST_CASE("job: over the network's address, listeners are there and not on loopback") {
  if (network_address().empty()) SKIP_TEST("no network address");
  auto seats = join_all(3, network_address() + ":" + std::to_string(free_port()));
  check_joined(seats);
  for (const auto& listener : tcp_listeners())
    CHECK(bootstrap::ip_of(listener).to_string() == network_address());
  check_every_connection(seats);
}
