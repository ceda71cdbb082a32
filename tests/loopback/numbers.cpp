// What docs/numerics.md promises, through the public face, with every algorithm on every transport.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ranks.hpp"
#include "schedule/catalogue.hpp"

using namespace rondo;
using namespace rondo::test;
using schedule::Algorithm;

namespace {

// Runs body(communicator) once for each algorithm that the operation has, on every transport.
void with_every_algorithm(uint32_t world, schedule::Operation operation,
                          const std::function<void(Communicator&, Algorithm)>& body) {
  for (const schedule::Schedule& schedule : schedule::catalogue()) {
    if (schedule.operation != operation) continue;
    for (const char* transport : {"tcp", "shm"}) {
      auto options = options_of_ranks(world);
      for (Options& own : options) {
        own.transport = transport;
        own.algorithm = name_of(schedule.algorithm);
      }
      const std::string what = fmt::format("{} {}", name_of(schedule.algorithm), transport);
      CAPTURE(what);
      on_ranks(options, [&](Communicator& comm) { body(comm, schedule.algorithm); });
    }
  }
}

template <class T>
T canonical_sum(const std::vector<T>& values, size_t first, size_t count) {
  if (count == 1) return values[first];
  const size_t left = std::bit_floor(count - 1);
  return canonical_sum(values, first, left) + canonical_sum(values, first + left, count - left);
}

// Values whose sums depend on the order.
float awkward(Rank rank, size_t i) {
  const uint32_t hash = uint32_t((i + 1) * 2654435761u) ^ uint32_t((rank + 1) * 0x85ebca6bu);
  return std::ldexp(float(int32_t(hash | 1)) / 3.f, int(hash >> 27) - 40);
}

template <class R>
void refused(const R& result, const char* text) {
  REQUIRE(!result.ok());
  CHECK(result.error().code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(result.error().message.find(text) != std::string::npos, result.error().message);
}

// Rank r: weight r % 3 + 1, but rank 1 has no data.
double weight_of(Rank rank) { return rank == 1 ? 0 : rank % 3 + 1; }
template <class T>
T weighted_element(Rank rank, size_t i) {
  if (rank == 1) return T(std::numeric_limits<float>::quiet_NaN());
  return T(float((rank + i) % 7));
}
template <class T>
T weighted_average(uint32_t world, size_t i) {
  using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Accumulator sum = 0, weights = 0;
  for (Rank rank = 0; rank < world; rank++) {
    if (rank == 1) continue;
    sum += Accumulator(weight_of(rank)) * Accumulator(float(weighted_element<T>(rank, i)));
    weights += Accumulator(weight_of(rank));
  }
  return T(sum / weights);  // small integers: exact but for the quotient
}

template <class T>
void check_weighted(Communicator& comm, size_t count) {
  const Rank rank = comm.rank();
  const uint32_t world = comm.world();
  std::vector<T> input(count), output(count), part(comm.shard(count).count);
  for (size_t i = 0; i < count; i++) input[i] = weighted_element<T>(rank, i);
  const CallOptions weight{.timeout = {}, .weight = weight_of(rank)};
  const auto wrong = [&](std::span<const T> got, size_t first) {
    size_t n = 0;
    for (size_t i = 0; i < got.size(); i++) {
      const T expected = weighted_average<T>(world, first + i);
      n += std::memcmp(&got[i], &expected, sizeof(T)) != 0;
    }
    return n;
  };
  CHECK(comm.all_reduce(std::span<const T>(input), std::span(output), Reduction::weighted_avg, weight).ok());
  CHECK(wrong(output, 0) == 0);
  CHECK(
      comm.reduce_scatter(std::span<const T>(input), std::span(part), Reduction::weighted_avg, weight).ok());
  CHECK(wrong(part, comm.shard(count).first) == 0);
  auto work = comm.async_all_reduce(std::span(input), Reduction::weighted_avg, weight);
  REQUIRE(work.ok());
  CHECK(work->wait().ok());
  CHECK(wrong(input, 0) == 0);
}

// All 24 ways to give 1, NaN, 3 and 4 to four ranks.
template <class T, class Bits>
void check_placements_of_nan(Communicator& comm, Bits canonical) {
  const T nan = T(std::numeric_limits<float>::quiet_NaN()), values[]{T(1.f), nan, T(3.f), T(4.f)};
  std::vector<int> order{0, 1, 2, 3};
  do {
    const auto reduced = [&](Reduction reduction) {
      std::vector<T> data(6, values[order[comm.rank()]]);
      CHECK(comm.all_reduce(std::span(data), reduction).ok());
      for (const T& value : data) CHECK(std::memcmp(&value, &data[0], sizeof(T)) == 0);
      return data[0];
    };
    CHECK(std::bit_cast<Bits>(reduced(Reduction::min)) == canonical);
    CHECK(std::bit_cast<Bits>(reduced(Reduction::max)) == canonical);
    CHECK(reduced(Reduction::min_num) == T(1.f));
    CHECK(reduced(Reduction::max_num) == T(4.f));
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace

// Small ones are one-shot, the others direct; nothing else can run them.
TEST_CASE("numbers: weighted averages take every rank by its weight, and nothing of those that have none") {
  for (const uint32_t world : {1u, 2u, 3u, 8u}) {
    on_every_transport(world, [](Communicator& comm) {
      for (const size_t count : {size_t(0), size_t(1), size_t(1023), size_t(40'001)})
        check_weighted<float>(comm, count);
      CHECK(comm.last_algorithm() == "direct");
      check_weighted<double>(comm, 100);
      CHECK(comm.last_algorithm() == (comm.world() == 1 ? "direct" : "one_shot"));
      check_weighted<bfloat16>(comm, 100);
      check_weighted<float16>(comm, 5000);
    });
  }
}

TEST_CASE("numbers: three tokens with a mean of 2 and one of 10 have a mean of 4") {
  on_every_transport(2, [](Communicator& comm) {
    const bool first = comm.rank() == 0;
    float mean = first ? 2 : 10;
    CHECK(comm.all_reduce(std::span(&mean, 1), Reduction::weighted_avg,
                          {.timeout = {}, .weight = first ? 3. : 1.})
              .ok());
    CHECK(mean == 4.f);
    // In one operation, with the weight in its header of 24 bytes.
    CHECK(comm.counters().operations == 1);
    CHECK(comm.counters().header_bytes_sent == 24);
    CHECK(comm.counters().payload_bytes_sent == sizeof(float));
    CHECK(comm.all_reduce(std::span(&mean, 1), Reduction::weighted_avg, {.timeout = {}, .weight = 0}).ok());
    CHECK(std::bit_cast<uint32_t>(mean) == 0);
    int8_t byte = first ? 50 : 7;
    CHECK(comm.all_reduce(std::span(&byte, 1), Reduction::premul_sum,
                          {.timeout = {}, .weight = first ? 3. : -2.})
              .ok());
    CHECK(byte == int8_t(150 - 14 - 256));
    double scaled = 3;
    CHECK(comm.all_reduce(std::span(&scaled, 1), Reduction::premul_sum,
                          {.timeout = {}, .weight = first ? 0.5 : 0.})
              .ok());
    CHECK(scaled == 1.5);
    float root_only = first ? 1 : 5;
    CHECK(comm.reduce(std::span(&root_only, 1), std::span(&root_only, 1), Reduction::weighted_avg, 1,
                      {.timeout = {}, .weight = first ? 1. : 3.})
              .ok());
    CHECK(root_only == (first ? 1.f : 4.f));
  });
}

TEST_CASE("numbers: weights of any size that is allowed weigh as they stand to each other") {
  struct Sample {
    double weights[2];
    float mean;
  };
  on_every_transport(2, [](Communicator& comm) {
    const bool first = comm.rank() == 0;
    const auto mean_of = [&](const Sample& sample, auto x) {
      CHECK(comm.all_reduce(std::span(&x, 1), Reduction::weighted_avg,
                            {.timeout = {}, .weight = sample.weights[first ? 0 : 1]})
                .ok());
      return x;
    };
    const float x = first ? 2 : 4;
    for (const Sample& sample :
         {Sample{{0x1p-166, 0x1p-166}, 3}, Sample{{0x1p133, 0x1p133}, 3}, Sample{{0x1p133, 1}, 2},
          Sample{{0x1p-133, 0x1p-133}, 3}, Sample{{0x1p127, 0x1p127}, 3}, Sample{{0x1p1023, 0x1p1023}, 3},
          Sample{{0x1p-1074, 0x1p-1074}, 3}, Sample{{0, 0x1p996}, 4}, Sample{{0x1p-996, 0x3p-996}, 3.5}}) {
      CAPTURE(sample.weights[0]);
      CHECK(mean_of(sample, x) == sample.mean);
      CHECK(mean_of(sample, double(x)) == double(sample.mean));
    }
    // The usual ones leave even the smallest numbers as they are.
    const float smallest = std::numeric_limits<float>::denorm_min();
    CHECK(mean_of({{1, 1}, 0}, smallest) == smallest);
  });
}

TEST_CASE("numbers: a world of 1 weighs its input, and products overflow and underflow") {
  on_every_transport(1, [](Communicator& comm) {
    const auto weighed = [&](auto x, Reduction reduction, double weight) {
      CHECK(comm.all_reduce(std::span(&x, 1), reduction, {.timeout = {}, .weight = weight}).ok());
      return x;
    };
    constexpr auto avg = Reduction::weighted_avg, sum = Reduction::premul_sum;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float x : {7.f, -7.f, -0.f, infinity, nan}) {
      CHECK(std::bit_cast<uint32_t>(weighed(x, avg, 0)) == 0);
      CHECK(std::bit_cast<uint32_t>(weighed(x, avg, 1)) == std::bit_cast<uint32_t>(x));
    }
    CHECK(weighed(7.f, sum, 0.3) == 7.f * 0.3f);
    CHECK(weighed(7., sum, 0.3) == 7. * 0.3);
    CHECK(weighed(int8_t(100), sum, 3) == int8_t(300 - 256));
    int changed = 0;  // the product is rounded, and then the quotient
    for (int i = 1; i < 100; i++) {
      const float weight = float(i) * 0.1f, product = 1.1f * weight, quotient = product / weight;
      CHECK(weighed(1.1f, avg, weight) == quotient);
      changed += quotient != 1.1f;
    }
    CHECK(changed > 0);
    CHECK(weighed(1e36f, avg, 1000) == infinity);
    CHECK(weighed(1e36f, avg, 100) == 1e36f * 100.f / 100.f);
    CHECK(weighed(1e36, avg, 1000) == 1e36 * 1000 / 1000);
    CHECK(weighed(bfloat16(1e36f), avg, 1000) == bfloat16(infinity));
    CHECK(weighed(0x1p-100f, avg, 0x1p-60) == 0);
    CHECK(weighed(0x1p-80f, avg, 0x1p-60) == 0x1p-80f);
    CHECK(std::bit_cast<uint32_t>(weighed(infinity, sum, 1e-50)) == 0x7fc00000);  // 0 * inf
    CHECK(weighed(infinity, sum, 1e-40) == infinity);
  });
}

TEST_CASE("numbers: reductions that a type does not have and weights that mean nothing are refused") {
  on_every_transport(2, [](Communicator& comm) {
    std::vector<float> floats(4);
    std::vector<int32_t> integers(4);
    refused(comm.all_reduce(std::span(floats), Reduction::bit_and), "no bit_and of f32");
    refused(comm.all_reduce(std::span(integers), Reduction::weighted_avg), "no weighted_avg of i32");
    refused(comm.all_reduce(std::span(floats), Reduction::weighted_avg, {.timeout = {}, .weight = -1}),
            "negative");
    refused(comm.all_reduce(std::span(floats), Reduction::premul_sum, {.timeout = {}, .weight = NAN}),
            "finite");
    refused(comm.all_reduce(std::span(integers), Reduction::premul_sum, {.timeout = {}, .weight = 0.5}),
            "whole number");
    CHECK(comm.counters().operations == 0);
    integers = {0b1100, 0b1010, -1, 0};
    if (comm.rank() == 1) integers = {0b1010, 0b1010, 5, 0};
    std::vector<int32_t> out(4);
    CHECK(comm.all_reduce(std::span<const int32_t>(integers), std::span(out), Reduction::bit_and).ok());
    CHECK(out == std::vector<int32_t>{0b1000, 0b1010, 5, 0});
    CHECK(comm.all_reduce(std::span<const int32_t>(integers), std::span(out), Reduction::bit_or).ok());
    CHECK(out == std::vector<int32_t>{0b1110, 0b1010, -1, 0});
    CHECK(comm.all_reduce(std::span<const int32_t>(integers), std::span(out), Reduction::bit_xor).ok());
    CHECK(out == std::vector<int32_t>{0b0110, 0, -6, 0});
  });
}

TEST_CASE(
    "numbers: reproducible sums have the bits of the canonical tree, whatever the algorithm and the split") {
  for (const uint32_t world : {2u, 3u, 4u, 7u, 8u}) {
    const size_t count = 3001;
    std::vector<float> expected(count), of_ranks(world);
    for (size_t i = 0; i < count; i++) {
      for (Rank rank = 0; rank < world; rank++) of_ranks[rank] = awkward(rank, i);
      expected[i] = canonical_sum(of_ranks, 0, world);
    }
    with_every_algorithm(world, schedule::Operation::all_reduce, [&](Communicator& comm, Algorithm) {
      const CallOptions reproducible{.timeout = {}, .weight = 1, .reproducible = true};
      for (const size_t piece : {count, size_t(1000), size_t(17)}) {
        std::vector<float> data(count), out(count);
        for (size_t i = 0; i < count; i++) data[i] = awkward(comm.rank(), i);
        for (size_t first = 0; first < count; first += piece) {
          const size_t n = std::min(piece, count - first);
          const std::span<float> from = std::span(data).subspan(first, n);
          const bool in_place = piece == 1000;
          const std::span<float> to = in_place ? from : std::span(out).subspan(first, n);
          REQUIRE(comm.all_reduce(std::span<const float>(from), to, Reduction::sum, reproducible).ok());
        }
        CHECK(std::memcmp(piece == 1000 ? data.data() : out.data(), expected.data(), count * 4) == 0);
      }
    });
  }
}

TEST_CASE("numbers: the option of a communicator, which a call may overrule") {
  auto options = options_of_ranks(4);
  for (Options& own : options) {
    own.algorithm = "ring";
    own.transport = "tcp";
  }
  options[0].reproducible = true;  // rank 0's counts
  on_ranks(options, [](Communicator& comm) {
    const float values[] = {1e8f, 1, -1e8f, 1};
    std::vector<float> data(4, values[comm.rank()]), in_ring = data;
    CHECK(comm.all_reduce(std::span(data)).ok());
    CHECK(data == std::vector<float>(4, 0.f));
    CHECK(comm.last_algorithm() != "ring");
    CHECK(comm.all_reduce(std::span(in_ring), Reduction::sum,
                          {.timeout = {}, .weight = 1, .reproducible = false})
              .ok());
    CHECK(comm.last_algorithm() == "ring");
    CHECK(in_ring != std::vector<float>(4, 0.f));  // each element in an order of its own
  });
}

TEST_CASE("numbers: the algorithm that a call asks for is run, or refused where it cannot do what is asked") {
  on_every_transport(4, [](Communicator& comm) {
    std::vector<float> data(100, 1);
    for (const char* algorithm : {"ring", "double_tree", "halving_doubling", "direct", "one_shot"}) {
      CHECK(comm.all_reduce(std::span(data), Reduction::max,
                            {.timeout = {}, .weight = 1, .algorithm = algorithm})
                .ok());
      CHECK(comm.last_algorithm() == algorithm);
    }
    const auto with = [&](Reduction reduction, std::string_view algorithm, bool reproducible) {
      return comm.all_reduce(
          std::span(data), reduction,
          {.timeout = {}, .weight = 1, .algorithm = algorithm, .reproducible = reproducible});
    };
    refused(with(Reduction::sum, "ring", true), "\"ring\" cannot do what it asks for (reproducible sums)");
    refused(with(Reduction::weighted_avg, "halving_doubling", false),
            "\"halving_doubling\" cannot do what it asks for (weights)");
    refused(with(Reduction::sum, "dissemination", false), "no algorithm");
    refused(with(Reduction::sum, "rings", false), "no algorithm");
    CHECK(with(Reduction::max, "auto", false).ok());
    CHECK(data == std::vector<float>(100, 1));
  });
}

TEST_CASE("numbers: known values, with every algorithm") {
  with_every_algorithm(8, schedule::Operation::all_reduce, [](Communicator& comm, Algorithm) {
    const Rank rank = comm.rank();
    std::vector<bfloat16> small(19, bfloat16(rank == 0 ? 256.f : 1.f));
    CHECK(comm.all_reduce(std::span(small)).ok());
    for (const bfloat16 value : small) CHECK(float(value) == 264.f);
    std::vector<float16> half(19, float16(rank == 0 ? 2048.f : 1.f));
    CHECK(comm.all_reduce(std::span(half)).ok());
    for (const float16 value : half) CHECK(float(value) == 2056.f);
  });
  with_every_algorithm(2, schedule::Operation::all_reduce, [](Communicator& comm, Algorithm) {
    std::vector<float16> large(5, float16(40000.f));
    CHECK(comm.all_reduce(std::span(large), Reduction::avg).ok());
    for (const float16 value : large) CHECK(float(value) == 40000.f);
    std::vector<int8_t> bytes(5, comm.rank() == 0 ? 120 : 100);
    CHECK(comm.all_reduce(std::span(bytes)).ok());
    CHECK(bytes == std::vector<int8_t>(5, -36));
  });
}

TEST_CASE("numbers: a NaN anywhere is everybody's minimum, and nobody's min_num, wherever it is") {
  with_every_algorithm(4, schedule::Operation::all_reduce, [](Communicator& comm, Algorithm) {
    check_placements_of_nan<float>(comm, uint32_t{0x7fc00000});
    check_placements_of_nan<float16>(comm, uint16_t{0x7fff});
    check_placements_of_nan<bfloat16>(comm, uint16_t{0x7fff});
  });
}

TEST_CASE("numbers: a count that neither ranks nor vectors of the processor divide") {
  on_every_transport(3, [](Communicator& comm) {
    const size_t count = 10'556'587;
    std::vector<float> data(count);
    for (size_t i = 0; i < count; i++) data[i] = float(comm.rank() + i % 7);
    CHECK(comm.all_reduce(std::span(data)).ok());
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += data[i] != float(3 + 3 * (i % 7));
    CHECK(wrong == 0);
  });
}

TEST_SUITE("slow: large") {
  TEST_CASE("numbers: vectors of more than 2^31 bytes are right around that border and everywhere else") {
    const uint64_t count = (uint64_t(1) << 31) + 3;
    on_every_transport(2, [&](Communicator& comm) {
      const auto memory = std::make_unique_for_overwrite<uint8_t[]>(count);
      const std::span all(memory.get(), count);
      const auto fill = [&] {
        for (uint64_t i = 0; i < count; i++) all[i] = comm.rank() == 0 ? uint8_t(i % 251) : uint8_t(1);
      };
      const auto wrong = [&](std::span<const uint8_t> got, uint64_t first) {
        uint64_t n = 0;
        for (uint64_t i = 0; i < got.size(); i++) n += got[i] != uint8_t((first + i) % 251 + 1);
        return n;
      };
      fill();
      CHECK(comm.all_reduce(all).ok());
      CHECK(int(all[(uint64_t(1) << 31) - 1]) == 187);
      CHECK(int(all[uint64_t(1) << 31]) == 188);
      CHECK(int(all[count - 1]) == 190);
      CHECK(wrong(all, 0) == 0);
      // The whole passes the border, the parts do not.
      fill();
      const Extent own = comm.shard(count);
      CHECK(comm.reduce_scatter(all, all.subspan(own.first, own.count)).ok());
      CHECK(wrong(all.subspan(own.first, own.count), own.first) == 0);
    });
  }
}
