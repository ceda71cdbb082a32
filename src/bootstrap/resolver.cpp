#include "bootstrap/resolver.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <signal.h>

#include <asio/post.hpp>
#include <system_error>
#include <thread>

namespace rondo::bootstrap {
namespace {

// localhost is the loopback addresses, whatever a name service says or lacks (RFC 6761, 6.3).
Result<std::vector<Address>> look_up(const std::string& host, uint16_t port) {
  if (host == "localhost")
    return std::vector<Address>{tcp_address(asio::ip::address_v4::loopback(), port),
                                tcp_address(asio::ip::address_v6::loopback(), port)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0)
    return Error{ErrorCode::system,
                 fmt::format("the name {} cannot be resolved: {}", host, ::gai_strerror(error))};
  std::vector<Address> addresses;
  for (const addrinfo* item = list; item; item = item->ai_next)
    if (item->ai_family == AF_INET || item->ai_family == AF_INET6)
      addresses.emplace_back(item->ai_addr, item->ai_addrlen);
  ::freeaddrinfo(list);
  return addresses;
}

}  // namespace

bool is_numeric(const std::string& host) {
  asio::error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

void resolve(std::shared_ptr<Service> service, const std::string& host, uint16_t port, Resolved done) {
  asio::io_context& context = service->context();
  asio::error_code error;
  if (const auto ip = asio::ip::make_address(host, error); !error) {
    asio::post(context, [done = std::move(done), address = tcp_address(ip, port)] {
      done(std::vector<Address>{address});
    });
    return;
  }
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([service = std::move(service), host, port, done] {
      service->guard([&] {
        auto addresses = look_up(host, port);
        asio::post(service->context(), [done, addresses = std::move(addresses)] { done(addresses); });
      });
    }).detach();
  } catch (const std::system_error& failure) {
    asio::post(context, [done, text = std::string(failure.what())] {
      done(Error{ErrorCode::system, "no thread to resolve a name: " + text});
    });
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace rondo::bootstrap
