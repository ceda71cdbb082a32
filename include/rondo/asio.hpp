// Operations that complete by asio completion tokens: callbacks, futures, coroutines. Optional: needs asio
// (standalone, 1.18 or later) when included; <rondo/rondo.hpp> does not include it.
//
//   asio::awaitable<void> step(rondo::AsioCommunicator comm, std::span<float> gradients) {
//     rondo::Result<void> done = co_await comm.async_all_reduce(gradients, asio::use_awaitable);
//     ...
//
// Callbacks and futures need nothing else. Coroutines need ASIO_HAS_CO_AWAIT, which asio sets by itself with g++.
// For clang 14 with libstdc++, which hides its coroutines from it, give the compiler
//   -D__cpp_impl_coroutine=201902L -DASIO_HAS_CO_AWAIT -DASIO_HAS_STD_COROUTINE
// in all that includes asio.
#pragma once
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rondo/communicator.hpp"

namespace rondo {

namespace detail {

// What is kept until the handler has been called.
template <class Handler>
struct AsioWait {
  using Executor = asio::associated_executor_t<Handler>;
  explicit AsioWait(Handler&& h) : handler(std::move(h)), guard(asio::get_associated_executor(handler)) {}

  Handler handler;
  asio::executor_work_guard<Executor> guard;
  std::optional<Work> work;
};

template <class Handler>
void complete_with(std::shared_ptr<AsioWait<Handler>> wait, Result<void> outcome) {
  const auto executor = wait->guard.get_executor();
  asio::post(executor, [wait = std::move(wait), outcome = std::move(outcome)]() mutable {
    Handler handler(std::move(wait->handler));
    wait.reset();
    handler(std::move(outcome));
  });
}

}  // namespace detail

/// Calls `start`, which returns a Result<Work>, when the token says so, and completes with the operation's
/// outcome on the executor of the token's handler: signature void(Result<void>). The communicator must
/// outlive the start; cancellation has no effect, abort() and deadlines do.
template <class Start, class Token>
auto async_complete(Start start, Token&& token) {
  return asio::async_initiate<Token, void(Result<void>)>(
      [](auto handler, Start begin) {
        using Handler = std::decay_t<decltype(handler)>;
        auto wait = std::make_shared<detail::AsioWait<Handler>>(std::move(handler));
        Result<Work> started = begin();
        if (!started) return detail::complete_with(std::move(wait), Result<void>(started.error()));
        wait->work.emplace(std::move(*started));
        Work& work = *wait->work;  // the callback keeps it
        work.on_end([wait] { detail::complete_with(wait, wait->work->wait()); });
      },
      token, std::move(start));
}

/// A communicator whose operations take a completion token as their last argument, after the arguments of the
/// operation of the same name in Communicator. Copies are cheap and refer to the same communicator, which
/// must outlive them.
class AsioCommunicator {
 public:
  explicit AsioCommunicator(Communicator& communicator) noexcept : communicator_(&communicator) {}
  Communicator& communicator() const noexcept { return *communicator_; }

  template <class... Args>
  auto async_all_reduce(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_all_reduce(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_reduce_scatter(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_reduce_scatter(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_reduce_scatter_v(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_reduce_scatter_v(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_reduce(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_reduce(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_all_gather(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_all_gather(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_all_gather_v(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_all_gather_v(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_broadcast(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_broadcast(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_gather(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_gather(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_scatter(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_scatter(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_all_to_all(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_all_to_all(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_all_to_all_v(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_all_to_all_v(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_send(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_send(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_recv(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_recv(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_send_recv(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_send_recv(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_barrier(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_barrier(a...); },
                 std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async_all_reduce_group(Args&&... args) const {
    return start([](Communicator& c, const auto&... a) { return c.async_all_reduce_group(a...); },
                 std::forward<Args>(args)...);
  }

 private:
  // The arguments but the last, which is the token, are copied: the start may come later.
  template <class Call, class... Args>
  auto start(Call call, Args&&... args) const {
    constexpr size_t last = sizeof...(Args) - 1;
    std::tuple<Args&&...> all(std::forward<Args>(args)...);
    return [&]<size_t... I>(std::index_sequence<I...>) {
      auto kept = std::make_tuple(std::get<I>(all)...);
      return async_complete(
          [call, kept = std::move(kept), comm = communicator_] {
            return std::apply([&](const auto&... a) { return call(*comm, a...); }, kept);
          },
          std::forward<std::tuple_element_t<last, std::tuple<Args&&...>>>(std::get<last>(all)));
    }
    (std::make_index_sequence<last>());
  }

  Communicator* communicator_;
};

}  // namespace rondo
