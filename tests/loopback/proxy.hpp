// Somebody between the ranks: passes on what comes to a port of its own, keeps a copy, and may alter a byte.
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/socket.hpp"
#include "fleet.hpp"

namespace rondo::test {

class Proxy {
 public:
  /// To a port of 127.0.0.1, from a free one of it or from `at`.
  explicit Proxy(uint16_t to, uint16_t at = 0)
      : to_(to),
        listener_(
            std::move(*bootstrap::listen_on(bootstrap::tcp_address(asio::ip::address_v4::loopback(), at)))) {
    port_ = bootstrap::port_of(bootstrap::local_address(listener_.get()));
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() {
    stop_ = true;
    thread_.join();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }
  int connections() const { return connections_; }
  /// Also those that found nobody behind it.
  int dialled() const { return dialled_; }
  /// From now on one byte of every transfer is another.
  void alter() { alter_ = true; }
  /// All that has passed, both ways.
  std::string seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  struct Way {
    int from, to;
    bool open = true;
  };

  void run() {
    std::vector<Descriptor> sockets;
    std::vector<Way> ways;
    while (!stop_) {
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      for (const Way& way : ways) polled.push_back({way.open ? way.from : -1, POLLIN, 0});
      ::poll(polled.data(), polled.size(), 20);
      for (size_t i = 0; i < ways.size(); ++i)
        if (polled[i + 1].revents != 0) pass_on(ways[i]);
      if ((polled[0].revents & POLLIN) == 0) continue;
      Descriptor client = bootstrap::accept_from(listener_.get());
      ++dialled_;
      const auto target = bootstrap::tcp_address(asio::ip::address_v4::loopback(), to_);
      Descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!client || ::connect(server.get(), target.data(), socklen_t(target.size())) != 0) continue;
      ways.push_back({client.get(), server.get()});
      ways.push_back({server.get(), client.get()});
      sockets.push_back(std::move(client));
      sockets.push_back(std::move(server));
      ++connections_;
    }
  }

  void pass_on(Way& way) {
    char bytes[16 << 10];
    const ssize_t count = ::recv(way.from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      way.open = false;
      ::shutdown(way.to, SHUT_WR);
      return;
    }
    if (alter_) bytes[count / 2] = char(bytes[count / 2] ^ 1);
    {
      const std::lock_guard lock(mutex_);
      seen_.append(bytes, size_t(count));
    }
    for (ssize_t sent = 0; sent < count && !stop_;) {
      const ssize_t n = ::send(way.to, bytes + sent, size_t(count - sent), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN) return;
      if (n > 0) sent += n;
      if (n < 0) std::this_thread::yield();
    }
  }

  const uint16_t to_;
  uint16_t port_ = 0;
  Descriptor listener_;
  std::atomic<bool> stop_{false}, alter_{false};
  std::atomic<int> connections_{0}, dialled_{0};
  std::mutex mutex_;
  std::string seen_;
  std::thread thread_;
};

}  // namespace rondo::test
