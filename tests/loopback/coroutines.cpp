// Completion by asio tokens: callbacks, futures and, where the compiler's library has them, coroutines.
#include <doctest/doctest.h>

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <future>
#include <vector>

#include "ranks.hpp"
#include "rondo/asio.hpp"

using namespace rondo;
using namespace rondo::test;

TEST_CASE("tokens: a callback runs on its executor, which waits for it") {
  on_every_transport(2, [](Communicator& comm) {
    asio::io_context context;
    std::vector<float> data(1000, 1);
    int called = 0;
    const auto thread = std::this_thread::get_id();
    AsioCommunicator(comm).async_all_reduce(
        std::span(data), asio::bind_executor(context.get_executor(), [&](const Result<void>& done) {
          CHECK(done.ok());
          CHECK(std::this_thread::get_id() == thread);
          CHECK(data == std::vector<float>(1000, 2));
          called++;
        }));
    context.run();  // has work until the handler has run
    CHECK(called == 1);
  });
}

TEST_CASE("tokens: what is wrong with the arguments comes to the handler too") {
  on_every_transport(2, [](Communicator& comm) {
    std::vector<float> data(3);
    auto refused = AsioCommunicator(comm).async_broadcast(std::span(data), Rank(7), asio::use_future);
    const Result<void> result = refused.get();
    REQUIRE(!result.ok());
    CHECK(result.error().code == ErrorCode::invalid_argument);
    CHECK(AsioCommunicator(comm).async_barrier(asio::use_future).get().ok());
  });
}

TEST_CASE("tokens: every operation takes one") {
  on_every_transport(3, [](Communicator& comm) {
    const AsioCommunicator ranks(comm);
    const int rank = int(comm.rank());
    const Rank next = (comm.rank() + 1) % 3, before = (comm.rank() + 2) % 3;
    const auto ok = [](std::future<Result<void>> done) { CHECK(done.get().ok()); };
    const auto token = asio::use_future;
    std::vector<int> three{rank, rank + 1, rank + 2}, one{-1}, all(3, -1);
    const std::vector<size_t> counts{1, 1, 1};
    const std::span<const int> own(three);
    using Numbers = std::vector<int>;
    ok(ranks.async_all_reduce(own, std::span(all), Reduction::sum, token));
    CHECK(all == Numbers{3, 6, 9});
    ok(ranks.async_reduce_scatter(own, std::span(one), Reduction::max, token));
    CHECK(one == Numbers{2 + rank});
    ok(ranks.async_reduce_scatter_v(own, std::span(one), std::span(counts), Reduction::min, token));
    CHECK(one == Numbers{rank});
    ok(ranks.async_all_gather(std::span<const int>(one), std::span(all), token));
    CHECK(all == Numbers{0, 1, 2});
    ok(ranks.async_reduce(own, std::span(all), Reduction::sum, Rank(1), token));
    CHECK(all == (rank == 1 ? Numbers{3, 6, 9} : Numbers{0, 1, 2}));
    ok(ranks.async_all_gather_v(std::span<const int>(one), std::span(all), std::span(counts), token));
    CHECK(all == Numbers{0, 1, 2});
    ok(ranks.async_all_to_all(own, std::span(all), token));
    CHECK(all == Numbers{rank, rank + 1, rank + 2});
    ok(ranks.async_gather(std::span<const int>(one), std::span(all), Rank(2), token));
    CHECK(all == (rank == 2 ? Numbers{0, 1, 2} : Numbers{rank, rank + 1, rank + 2}));
    ok(ranks.async_scatter(own, std::span(one), Rank(1), token));
    CHECK(one == Numbers{1 + rank});
    ok(ranks.async_broadcast(std::span(one), Rank(2), token));
    CHECK(one == Numbers{3});
    ok(ranks.async_all_to_all_v(own, std::span(counts), std::span(all), std::span(counts), token));
    CHECK(all == Numbers{rank, rank + 1, rank + 2});
    ok(ranks.async_send_recv(own, next, std::span(all), before, token));
    CHECK(all[0] == int(before));
    if (rank == 0) ok(ranks.async_send(own, Rank(2), token));
    if (rank == 2) ok(ranks.async_recv(std::span(all), Rank(0), token));
    CHECK((rank != 2 || all == Numbers{0, 1, 2}));
    ok(ranks.async_barrier(token));
    const std::vector<Tensor> tensors{{three.data(), three.data(), 1}, {&three[1], &three[1], 2}};
    ok(ranks.async_all_reduce_group(std::span(tensors), DataType::i32, Reduction::sum, token));
    CHECK(three == Numbers{3, 6, 9});
  });
}

#if defined(ASIO_HAS_CO_AWAIT)
namespace {

asio::awaitable<void> program(AsioCommunicator comm, int& rounds) {
  const Communicator& plain = comm.communicator();
  std::vector<int64_t> sum(1), all(plain.world());
  for (int64_t round = 0; round < 20; round++) {
    sum[0] = round + plain.rank();
    const auto added = co_await comm.async_all_reduce(std::span(sum), asio::use_awaitable);
    CHECK(added.ok());
    CHECK(sum[0] == 3 * round + 3);
    sum[0] += plain.rank();
    CHECK((co_await comm.async_all_gather(std::span<const int64_t>(sum), std::span(all), asio::use_awaitable))
              .ok());
    CHECK(all == std::vector<int64_t>{3 * round + 3, 3 * round + 4, 3 * round + 5});
    rounds++;
  }
}

}  // namespace

TEST_CASE("tokens: a coroutine awaits one operation after another") {
  on_every_transport(3, [](Communicator& comm) {
    asio::io_context context;
    int rounds = 0;
    asio::co_spawn(context, program(AsioCommunicator(comm), rounds), asio::detached);
    context.run();
    CHECK(rounds == 20);
  });
}
#endif
