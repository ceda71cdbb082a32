// The operations that gather, scatter and exchange, the uneven ones, those between two ranks and groups,
// through the public face on every transport.
#include <doctest/doctest.h>

#include <deque>
#include <numeric>
#include <valarray>
#include <vector>

#include "../text.hpp"
#include "ranks.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;

namespace {

// Different for every rank and place.
std::vector<int> numbers(Rank rank, size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), int(rank) * 1'000'000);
  return values;
}

template <class R>
void refused(const R& result, const char* text) {
  CHECK(!result.ok());
  if (result.ok()) return;
  CHECK(result.error().code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(result.error().message.find(text) != std::string::npos, result.error().message);
}

// Rank r's part of an uneven operation.
size_t part_of(Rank rank) { return rank % 3 == 1 ? 0 : 7 * rank + 3; }

// What does not lie in one piece cannot be given.
template <class Data>
concept is_taken = requires(Communicator& comm, Data& data) {
  comm.all_reduce(std::span(data));
};
static_assert(is_taken<std::vector<float>> && is_taken<float[4]>);
static_assert(!is_taken<std::deque<float>> && !is_taken<std::vector<bool>>);
static_assert(!is_taken<std::slice_array<float>>);  // every k-th of a valarray

}  // namespace

TEST_CASE("movements: reduce, gather and scatter leave the buffers of others alone, in place or not") {
  for (const uint32_t world : {1u, 2u, 5u}) {
    on_every_transport(world, [&](Communicator& comm) {
      for (Rank root = 0; root < world; root++) {
        const bool is_root = comm.rank() == root;
        for (const size_t count : {size_t(0), size_t(1), size_t(1000)}) {
          std::vector<int> own = numbers(comm.rank(), count), sum(count, -1), all(count * world, -1),
                           part(count, -1);
          CHECK(comm.reduce(std::span<const int>(own), std::span(sum), Reduction::sum, root).ok());
          for (size_t i = 0; i < count; i++)
            CHECK(sum[i] == (is_root ? int(world * i + 1'000'000 * (world * (world - 1) / 2)) : -1));
          CHECK(comm.gather(std::span<const int>(own), std::span(all), root).ok());
          for (size_t i = 0; i < all.size(); i++)
            CHECK(all[i] == (is_root ? int(i / count * 1'000'000 + i % count) : -1));
          CHECK(comm.scatter(std::span<const int>(all), std::span(part), root).ok());
          CHECK(part == own);
          // In place: the root's part lies in the whole.
          std::span<int> mine(own);
          if (is_root) {
            std::ranges::copy(own, all.begin() + root * count);
            mine = std::span(all).subspan(root * count, count);
          }
          CHECK(comm.gather(mine, std::span(all), root).ok());
          CHECK(comm.scatter(std::span(all), mine, root).ok());
          CHECK(std::ranges::equal(mine, numbers(comm.rank(), count)));
          CHECK(comm.reduce(std::span(own), std::span(own), Reduction::max, root).ok());
          CHECK(own == numbers(is_root ? world - 1 : comm.rank(), count));
        }
      }
    });
  }
}

TEST_CASE("movements: uneven parts, empty ones too") {
  for (const uint32_t world : {1u, 2u, 5u, 8u}) {
    std::vector<size_t> counts(world);
    for (Rank rank = 0; rank < world; rank++) counts[rank] = part_of(rank);
    const size_t total = std::accumulate(counts.begin(), counts.end(), size_t(0));
    on_every_transport(world, [&](Communicator& comm) {
      const Rank rank = comm.rank();
      const size_t first = std::accumulate(counts.begin(), counts.begin() + rank, size_t(0));
      const std::vector<int> own = numbers(rank, counts[rank]);
      std::vector<int> all(total, -1), expected;
      for (Rank r = 0; r < world; r++)
        for (const int value : numbers(r, counts[r])) expected.push_back(value);
      CHECK(comm.all_gather_v(std::span(own), std::span(all), counts).ok());
      CHECK(all == expected);

      std::vector<int> part(counts[rank], -1);
      CHECK(comm.reduce_scatter_v(std::span(all), std::span(part), counts).ok());
      for (size_t i = 0; i < part.size(); i++) CHECK(part[i] == int(world) * expected[first + i]);
      // In place.
      CHECK(comm.reduce_scatter_v(std::span(all), std::span(all).subspan(first, part.size()), counts,
                                  Reduction::min)
                .ok());
      CHECK(comm.all_gather_v(std::span(all).subspan(first, part.size()), std::span(all), counts).ok());
      CHECK(all == expected);
      refused(comm.all_gather_v(std::span(own), std::span(all).first(total - 1), counts), "add up to");
      refused(comm.all_gather_v(std::span(own), std::span(all), std::span(counts).first(world - 1)),
              "one for each rank");
    });
  }
}

TEST_CASE("movements: all_to_all transposes, evenly and unevenly") {
  for (const uint32_t world : {1u, 2u, 5u, 8u}) {
    on_every_transport(world, [&](Communicator& comm) {
      const Rank rank = comm.rank();
      for (const size_t part : {size_t(0), size_t(1), size_t(5000)}) {
        const std::vector<int> input = numbers(rank, part * world);
        std::vector<int> output(part * world, -1);
        CHECK(comm.all_to_all(std::span(input), std::span(output)).ok());
        for (Rank r = 0; r < world; r++)
          for (size_t i = 0; i < part; i++)
            REQUIRE(output[r * part + i] == int(r * 1'000'000 + rank * part + i));
      }
      // Rank r sends r + 2 s elements to rank s, and rank 1 nothing to anybody.
      const auto sent = [](Rank from, Rank to) { return from == 1 ? size_t(0) : from + 2 * to; };
      std::vector<size_t> send_counts, recv_counts;
      std::vector<int> expected;
      for (Rank r = 0; r < world; r++) {
        send_counts.push_back(sent(rank, r));
        recv_counts.push_back(sent(r, rank));
        size_t first = 0;
        for (Rank s = 0; s < rank; s++) first += sent(r, s);
        for (size_t i = 0; i < sent(r, rank); i++) expected.push_back(int(r * 1'000'000 + first + i));
      }
      const std::vector<int> input =
          numbers(rank, std::accumulate(send_counts.begin(), send_counts.end(), size_t(0)));
      std::vector<int> output(expected.size(), -1);
      for (int again = 0; again < 3; again++)
        CHECK(comm.all_to_all_v(std::span(input), send_counts, std::span(output), recv_counts).ok());
      CHECK(output == expected);
      if (world > 1) {
        std::vector<int> odd(world + 1);
        refused(comm.all_to_all(std::span<const int>(odd), std::span(odd)), "use all_to_all_v");
      }
      std::vector<int> both(world);
      refused(comm.all_to_all(std::span<const int>(both), std::span(both)), "never in place");
    });
  }
}

TEST_CASE("movements: between two ranks, beside operations of all") {
  on_every_transport(4, [](Communicator& comm) {
    const Rank rank = comm.rank(), next = (rank + 1) % 4, previous = (rank + 3) % 4;
    for (const size_t count : {size_t(0), size_t(1), size_t(100'000)}) {
      const std::vector<int> own = numbers(rank, count);
      std::vector<int> got(count, -1);
      CHECK(comm.send_recv(std::span(own), next, std::span(got), previous).ok());
      CHECK(got == numbers(previous, count));
      // Ranks 0 and 1 exchange twice while the others do nothing: all then agree on what comes next.
      for (int round = 0; round < 2 && rank < 2; round++) {
        CHECK((rank == 0 ? comm.send(std::span(own), 1) : comm.recv(std::span(got), 0)).ok());
        CHECK((rank == 0 ? comm.recv(std::span(got), 1) : comm.send(std::span(own), 0)).ok());
        CHECK(got == numbers(1 - rank, count));
      }
      CHECK(comm.barrier().ok());
      CHECK(comm.send_recv(std::span(own), rank, std::span(got), rank).ok());  // to itself
      CHECK(got == own);
    }
    std::vector<int> own(3), got(2);
    refused(comm.send(std::span(own), rank), "only in a send_recv");
    refused(comm.send_recv(std::span(own), rank, std::span(got), rank), "must receive as much");
    refused(comm.send(std::span(own), 4), "no rank 4");
    const Rank minus_one = Rank(-1);  // rank 0's left neighbour, to who forgets the modulus
    refused(comm.send(std::span(own), minus_one), "send or receive: there is no rank 4294967295");
    refused(comm.recv(std::span(got), minus_one), "no rank 4294967295");
    refused(comm.send_recv(std::span(own), minus_one, std::span(got), previous), "no rank 4294967295");
    refused(comm.send_recv(std::span(own), next, std::span(got), minus_one), "no rank 4294967295");
    std::vector<size_t> to(4, 1), from(4, 1);
    to[rank] = 2, from[rank] = 3;
    std::vector<int> in(5), out(6);
    refused(comm.all_to_all_v(std::span(in), to, std::span(out), from),
            "sends itself 2 elements, but is to receive 3");
    // Whoever does both asynchronously need not care for the order.
    std::vector<int> from_previous(1000);
    const std::vector<int> mine = numbers(rank, 1000);
    auto exchange = comm.async_send_recv(std::span(mine), next, std::span(from_previous), previous);
    REQUIRE(exchange.ok());
    CHECK(exchange->wait().ok());
    CHECK(from_previous == numbers(previous, 1000));
  });
}

TEST_CASE("movements: two ranks that disagree on what they exchange are told so") {
  on_every_transport(2, [](Communicator& comm) {
    std::vector<int> data(10);
    const auto began = std::chrono::steady_clock::now();
    const auto result =
        comm.rank() == 0 ? comm.send(std::span(data), 1) : comm.recv(std::span(data).first(9), 0);
    CHECK(std::chrono::steady_clock::now() - began < milliseconds(1000));
    if (comm.rank() == 1) {
      REQUIRE(!result.ok());
      CHECK(result.error().code == ErrorCode::mismatch);
      CHECK(result.error().peer == 0);
    }
    CHECK(std::ranges::all_of(data, [](int value) { return value == 0; }));
  });
}

TEST_CASE("movements: a group is one operation") {
  on_every_transport(3, [](Communicator& comm) {
    std::vector<float> a(5, 1), b(1, float(comm.rank())), c(300, 2), sum(300);
    const std::vector<Tensor> tensors{{a.data(), a.data(), a.size()},
                                      {b.data(), b.data(), b.size()},
                                      {nullptr, nullptr, 0},
                                      {c.data(), sum.data(), c.size()}};
    CHECK(comm.all_reduce_group(tensors, DataType::f32).ok());
    CHECK(a == std::vector<float>(5, 3));
    CHECK(b == std::vector<float>(1, 3));
    CHECK(sum == std::vector<float>(300, 6));
    CHECK(c == std::vector<float>(300, 2));
    CHECK(comm.counters().operations == 1);
    auto work = comm.async_all_reduce_group(tensors, DataType::f32, Reduction::max);
    REQUIRE(work.ok());
    CHECK(work->wait().ok());
    CHECK(sum == std::vector<float>(300, 2));
    CHECK(comm.all_reduce_group({}, DataType::f32).ok());
    const std::vector<Tensor> crossing{{a.data(), c.data(), 5}, {b.data(), c.data() + 4, 1}};
    refused(comm.all_reduce_group(crossing, DataType::f32), "overlaps that of another");
    const std::vector<Tensor> shifted{{c.data(), c.data() + 1, 5}};
    refused(comm.all_reduce_group(shifted, DataType::f32), "tensor 0");
    // What is refused is the group, not the empty vector that it begins as.
    refused(comm.all_reduce_group(tensors, DataType::f32, Reduction::sum, {.timeout = milliseconds(0)}),
            (", in " + std::to_string(tensors.size()) + " vectors: a timeout").c_str());
  });
}

TEST_CASE("movements: what looks alike and is not meant to be the same is told apart") {
  const auto differ = [](const char* field, const auto& call) {
    CAPTURE(field);
    on_every_transport(2, [&](Communicator& comm) {
      std::vector<float> data(5, 1);
      const auto result = call(comm, data);
      REQUIRE(!result.ok());
      CHECK(result.error().code == ErrorCode::mismatch);
      CHECK_MESSAGE(has(result.error().message, field), result.error().message);
      CHECK(data == std::vector<float>(5, 1));
    });
  };
  differ("hash of their counts: ", [](Communicator& comm, std::vector<float>& data) {
    const size_t cut = comm.rank() == 0 ? 2 : 3;
    const std::vector<Tensor> tensors{{data.data(), data.data(), cut},
                                      {data.data() + cut, data.data() + cut, 5 - cut}};
    return comm.all_reduce_group(tensors, DataType::f32);
  });
  differ("tag: 7 against 8", [](Communicator& comm, std::vector<float>& data) {
    CallOptions options;
    options.tag = 7 + comm.rank();
    return comm.all_reduce(std::span(data), Reduction::sum, options);
  });
  differ("tag: 7 against 8", [](Communicator& comm, std::vector<float>& data) {
    CallOptions options;
    options.tag = 7 + comm.rank();
    std::vector<float> other(data);
    return comm.send_recv(std::span(data), 1 - comm.rank(), std::span(other), 1 - comm.rank(), options);
  });
  differ("tag: 7 against 8", [](Communicator& comm, std::vector<float>&) {
    CallOptions options;
    options.tag = 7 + comm.rank();
    return comm.barrier(options);
  });
  differ("reproducible: yes against no", [](Communicator& comm, std::vector<float>& data) {
    CallOptions options;
    options.algorithm = "direct";
    options.reproducible = comm.rank() == 0;
    return comm.all_reduce(std::span(data), Reduction::sum, options);
  });
}
