// Ranks as threads of one process, each with a Job of its own; what their handlers were told, and when.
#pragma once
#include <dirent.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/environment.hpp"
#include "base/random.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/job.hpp"
#include "bootstrap/service.hpp"
#include "bootstrap/socket.hpp"

namespace rondo::test {

using bootstrap::Job;
using Link = std::pair<Rank, uint16_t>;

class Recorder : public bootstrap::Handler {
 public:
  std::unique_ptr<bootstrap::Sharing> shares;  // to be set before joining
  bootstrap::Sharing* sharing() noexcept override { return shares.get(); }
  void connected(Rank peer, uint16_t lane, Result<Stream> stream) noexcept override {
    const std::lock_guard lock(mutex_);
    ++calls_[{peer, lane}];
    if (stream)
      sockets_[{peer, lane}] = std::move(stream->descriptor);
    else
      errors_.insert_or_assign({peer, lane}, stream.error());
    changed_.notify_all();
  }
  void failed(const Error& error) noexcept override {
    const std::lock_guard lock(mutex_);
    failures_.push_back(error);
    changed_.notify_all();
  }

  /// The connection, or -1 after `patience`.
  int socket(Link link, milliseconds patience = milliseconds(5000)) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return sockets_.count(link) || errors_.count(link); });
    return sockets_.count(link) ? sockets_[link].get() : -1;
  }
  std::optional<Error> link_error(Link link, milliseconds patience = milliseconds(5000)) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return sockets_.count(link) || errors_.count(link); });
    const auto found = errors_.find(link);
    return found == errors_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<Error> failure(milliseconds patience = milliseconds(2000)) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return !failures_.empty(); });
    return failures_.empty() ? std::nullopt : std::optional(failures_.front());
  }
  size_t failures() {
    const std::lock_guard lock(mutex_);
    return failures_.size();
  }
  int calls(Link link) {
    const std::lock_guard lock(mutex_);
    return calls_[link];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Link, Descriptor> sockets_;
  std::map<Link, Error> errors_;
  std::map<Link, int> calls_;
  std::vector<Error> failures_;
};

struct Seat {
  std::unique_ptr<Recorder> handler = std::make_unique<Recorder>();
  std::unique_ptr<Job> job;
  std::optional<Error> error;
  std::chrono::duration<double> took{};
};

inline Options options_for(Rank rank, uint32_t world, const std::string& root, double timeout_s = 20) {
  Options options;
  options.rank = rank;
  options.world = world;
  options.root = root;
  options.secret = "the secret of this test";
  options.init_timeout = milliseconds(int64_t(timeout_s * 1000));
  return options;
}

inline void join(Seat& seat, const Options& options, const bootstrap::Limits& limits = {}) {
  const auto start = Clock::now();
  auto complete = rondo::complete(options);
  if (complete) {
    auto job = Job::join(*complete, {}, bootstrap::Service::instance(), *seat.handler, limits);
    if (job)
      seat.job = std::move(*job);
    else
      seat.error = job.error();
  } else {
    seat.error = complete.error();
  }
  seat.took = Clock::now() - start;
}

/// One thread per element; all joined at the end.
inline std::vector<Seat> join_all(const std::vector<Options>& options, const bootstrap::Limits& limits = {}) {
  std::vector<Seat> seats(options.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.size(); ++i)
    threads.emplace_back([&, i] { join(seats[i], options[i], limits); });
  for (auto& thread : threads) thread.join();
  return seats;
}

inline std::vector<Seat> join_all(uint32_t world, const std::string& root, double timeout_s = 20) {
  std::vector<Options> options;
  for (Rank rank = 0; rank < world; ++rank) options.push_back(options_for(rank, world, root, timeout_s));
  return join_all(options);
}

inline std::string unix_root() { return "unix:@rondo-test-" + std::to_string(random_number()); }

inline bool has_ipv6() {
  return bool(bootstrap::listen_on(bootstrap::tcp_address(asio::ip::address_v6::loopback(), 0)));
}

inline void check_joined(std::vector<Seat>& seats) {
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    CAPTURE(rank);
    if (seats[rank].error) MESSAGE(seats[rank].error->message);
    REQUIRE(seats[rank].job);
    CHECK(seats[rank].job->rank() == rank);
    CHECK(seats[rank].job->world() == seats.size());
    CHECK(seats[rank].job->local_world() == seats.size());
    CHECK(seats[rank].job->epoch() == seats[0].job->epoch());
  }
}

inline std::vector<Seat> up(uint32_t world) {
  auto seats = join_all(world, unix_root());
  check_joined(seats);
  return seats;
}

/// A byte each way proves that both ends are of the same connection.
inline void check_talk(int left, int right, char byte) {
  REQUIRE(left >= 0);
  REQUIRE(right >= 0);
  for (const auto& [from, to] : {std::pair(left, right), std::pair(right, left)}) {
    REQUIRE(::send(from, &byte, 1, MSG_NOSIGNAL) == 1);
    char got = 0;
    const auto deadline = deadline_after(milliseconds(2000));
    while (::recv(to, &got, 1, MSG_DONTWAIT) != 1 && Clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(1));
    CHECK(got == byte);
    ++byte;
  }
}

/// Free a moment ago, in both families, and outside the ephemeral range: no connection takes it meanwhile.
inline uint16_t free_port() {
  const asio::ip::address everywhere =
      has_ipv6() ? asio::ip::address(asio::ip::address_v6::any()) : asio::ip::address_v4::any();
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto port = uint16_t(15000 + random_number() % 15000);
    if (bootstrap::listen_on(bootstrap::tcp_address(everywhere, port))) return port;
  }
  return 0;
}

inline std::vector<int> open_descriptors() {
  std::vector<int> descriptors;
  DIR* directory = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(directory))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != ::dirfd(directory))
      descriptors.push_back(std::atoi(entry->d_name));
  ::closedir(directory);
  return descriptors;
}

/// The TCP sockets of this process that listen.
inline std::vector<bootstrap::Address> tcp_listeners() {
  std::vector<bootstrap::Address> listeners;
  for (const int fd : open_descriptors()) {
    int listening = 0;
    socklen_t size = sizeof(listening);
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening) continue;
    if (const auto address = bootstrap::local_address(fd); bootstrap::is_tcp(address))
      listeners.push_back(address);
  }
  return listeners;
}

/// A connection of somebody who is not a rank; blocking, with a time limit on each call.
class Stranger {
 public:
  explicit Stranger(const bootstrap::Address& address)
      : socket_(::socket(address.data()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{5, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    connected_ = ::connect(socket_.get(), address.data(), socklen_t(address.size())) == 0;
  }
  bool connected() const { return connected_; }
  int descriptor() const { return socket_.get(); }
  /// How many bytes were taken before the other side closed.
  size_t send(std::span<const std::byte> data) {
    size_t sent = 0;
    while (sent < data.size()) {
      const ssize_t count = ::send(socket_.get(), data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += size_t(count);
    }
    return sent;
  }
  bootstrap::Bytes receive(size_t most) {
    bootstrap::Bytes data(most);
    size_t got = 0;
    while (got < most) {
      const ssize_t count = ::recv(socket_.get(), data.data() + got, most - got, 0);
      if (count <= 0) break;
      got += size_t(count);
    }
    data.resize(got);
    return data;
  }
  /// Whether the other side has closed within the time limit, whatever it sent before.
  bool closed_by_peer() {
    std::byte scrap[256];
    for (;;) {
      const ssize_t count = ::recv(socket_.get(), scrap, sizeof(scrap), 0);
      if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
      if (count < 0) return false;
    }
  }

 private:
  Descriptor socket_;
  bool connected_ = false;
};

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace rondo::test
