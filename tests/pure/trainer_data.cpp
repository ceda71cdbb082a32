#include <doctest/doctest.h>

#include <set>

#include "corpus.hpp"
#include "digest.hpp"
#include "random.hpp"
#include "step.hpp"
#include "text.hpp"

using namespace trainer;

namespace {

// Every byte tells its block (low 7 bits; the high bit is set in held-out blocks).
Text marked(size_t size) {
  Text text;
  for (size_t i = 0; i < size; i++) {
    const size_t block = i / 4096;
    text.bytes.push_back(char((block & 127) | (block % 10 == 9 ? 128 : 0)));
  }
  return text;
}

}  // namespace

TEST_CASE("random: a pure function of its key, and every part of the key matters") {
  CHECK(random_bits({1, 2, 3}) == random_bits({1, 2, 3}));
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 20; seed++)
    for (uint64_t stream = 0; stream < 20; stream++)
      for (uint64_t index = 0; index < 20; index++) seen.insert(random_bits({seed, stream, index}));
  CHECK(seen.size() == 8000);
}

TEST_CASE("random: below a limit evenly, normal with mean 0 and variance 1") {
  std::vector<int> counts(7);
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 70000; i++) {
    counts[random_below({1, 0, i}, 7)]++;
    const double x = random_normal({1, 1, i});
    sum += x;
    squares += x * x;
  }
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);  // five deviations
  CHECK(std::abs(sum / 70000) < 0.02);
  CHECK(std::abs(squares / 70000 - 1) < 0.03);
}

TEST_CASE("corpus: no training window touches a held-out block, and every other window exists once") {
  for (const size_t size : {40960u, 50000u, 81920u, 100003u}) {
    const int context = 128;
    auto corpus = Corpus::create(marked(size), context);
    REQUIRE(corpus.ok());
    std::set<uint64_t> starts;
    for (uint64_t i = 0; i < corpus->training_windows(); i++) starts.insert(corpus->window(i));
    CHECK(starts.size() == corpus->training_windows());
    for (uint64_t first = 0; first + context < size; first++) {
      const bool held_out = first / 4096 % 10 == 9 || (first + context) / 4096 % 10 == 9;
      if (starts.count(first) == held_out) FAIL_CHECK("window at ", first);
    }
    CHECK(*starts.rbegin() + context < size);
  }
}

TEST_CASE("corpus: batches of 200 steps hold training bytes only, one shifted against the other") {
  auto corpus = Corpus::create(marked(200000), 64);
  REQUIRE(corpus.ok());
  for (uint64_t step = 0; step < 200; step++) {
    const Batch batch = corpus->training_batch(1, step, {0, 8});
    REQUIRE(batch.tokens.size() == 8 * 64);
    for (size_t i = 0; i < batch.tokens.size(); i++) {
      REQUIRE(batch.tokens[i] < 128);
      REQUIRE(batch.targets[i] < 128);
      if (i % 64 != 63) REQUIRE(batch.targets[i] == batch.tokens[i + 1]);
    }
  }
}

TEST_CASE("corpus: held-out windows predict every held-out byte but the first of each block, once") {
  for (const int context : {1, 100, 128, 4096}) {
    auto corpus = Corpus::create(marked(4096 * 29 + 17), context);
    REQUIRE(corpus.ok());
    const Batch all = corpus->held_out_batch({0, corpus->held_out_windows()});
    size_t targets = 0;
    for (size_t i = 0; i < all.targets.size(); i++) {
      if (all.targets[i] == no_target) continue;
      targets++;
      if (all.targets[i] < 128 || all.tokens[i] != all.targets[i])
        FAIL_CHECK("target ", i);  // same block, held out
    }
    CHECK(targets == 2 * 4095 + 16);  // the last block is cut short
  }
}

TEST_CASE("corpus: the order of the data does not depend on ranks or micro-batches") {
  auto corpus = Corpus::create(Text{"generated", generate_text(100000), ""}, 32);
  REQUIRE(corpus.ok());
  const Batch whole = corpus->training_batch(5, 17, {0, 12});
  for (const auto& [world, micro_batches] :
       {std::pair{1u, 1u}, {1, 4}, {2, 2}, {4, 1}, {3, 2}, {5, 1}, {8, 3}}) {
    Batch joined;
    for (uint32_t rank = 0; rank < world; rank++)
      for (uint32_t i = 0; i < micro_batches; i++) {
        const Batch part =
            corpus->training_batch(5, 17, Share{rank, world, micro_batches, 5, 12}.sequences_of(i));
        joined.tokens.insert(joined.tokens.end(), part.tokens.begin(), part.tokens.end());
        joined.targets.insert(joined.targets.end(), part.targets.begin(), part.targets.end());
      }
    CHECK(joined.tokens == whole.tokens);
    CHECK(joined.targets == whole.targets);
  }
  CHECK(corpus->training_batch(5, 18, {0, 12}).tokens != whole.tokens);
  CHECK(corpus->training_batch(6, 17, {0, 12}).tokens != whole.tokens);
}

TEST_CASE("corpus: a text of less than ten blocks is refused with what is needed") {
  const auto corpus = Corpus::create(marked(36864), 128);
  REQUIRE(!corpus.ok());
  CHECK(corpus.error().message.find("36864 bytes") != std::string::npos);
  CHECK(corpus.error().message.find("40960") != std::string::npos);
}

TEST_CASE("text: sha256 of a known text, and the generated one is the same everywhere") {
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string text = generate_text(100000);
  CHECK(text.size() >= 100000);
  CHECK(sha256_of(text.substr(0, 100000)) ==
        "db021844113c3997bef8d988a4ea69d625ca55b6a5db5934c4ab908d119d0d48");
  CHECK(text.substr(0, 50000) == generate_text(50000).substr(0, 50000));
}

TEST_CASE("text: a file that is not there is an error that says so") {
  const auto text = load_text("/nonexistent/text");
  REQUIRE(!text.ok());
  CHECK(text.error().message == "cannot read /nonexistent/text: No such file or directory");
  CHECK(load_text("generated").value().sha256.size() == 64);
  CHECK(!load_text("generated").value().substitute);
}
