// TLS on a whole job: what travels, who gets in, and how it ends.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <numeric>

#include "proxy.hpp"
#include "ranks.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

const std::string marker = "this text is what the ranks tell each other";

std::vector<Options> tls_options(uint32_t world, const std::string& root = {}) {
  auto all = options_of_ranks(world);
  const std::string port = "127.0.0.1:" + std::to_string(free_port());
  for (Options& own : all) {
    own.root = root.empty() ? port : root;
    own.transport = "tcp";
    own.tls = true;
  }
  return all;
}

// Two ranks with a listener between them on all connections: control and data. What it has heard.
std::string overheard(bool tls) {
  auto options = tls_options(2);
  const uint16_t root = free_port(), data = free_port();
  Proxy control(root), links(data);
  for (Options& own : options) {
    own.tls = tls;
    own.root = control.address();
    own.algorithm = "halving_doubling";
  }
  options[0].listen = "127.0.0.1:" + std::to_string(root);
  options[1].ports = std::to_string(data);
  options[1].advertise = links.address();
  on_ranks(options, [&](Communicator& comm) {
    std::vector<char> text;
    while (text.size() < 100'000) text.insert(text.end(), marker.begin(), marker.end());
    std::vector<uint8_t> mine(text.begin(), text.end()), all(2 * text.size());
    CHECK(comm.all_gather(std::span<const uint8_t>(mine), std::span(all)).ok());
    CHECK(std::equal(mine.begin(), mine.end(), all.begin()));
    CHECK(std::equal(mine.begin(), mine.end(), all.begin() + ptrdiff_t(mine.size())));
  });
  CHECK(control.connections() >= 1);
  CHECK(links.connections() >= 1);
  CHECK(links.seen().size() > 200'000);
  return control.seen() + links.seen();
}

}  // namespace

TEST_CASE("tls: collectives are exact, over every kind of root") {
  for (const uint32_t world : {2u, 3u, 5u})
    for (const std::string& root : {std::string(), unix_root()})
      on_ranks(tls_options(world, root), [&](Communicator& comm) {
        CHECK(comm.transport() == "tcp");
        for (const size_t count : {1u, 4096u, 100'000u, 1'000'003u}) {
          std::vector<int32_t> data(count);
          std::iota(data.begin(), data.end(), int32_t(comm.rank()));
          CHECK(comm.all_reduce(std::span(data)).ok());
          size_t wrong = 0;
          for (size_t i = 0; i < count; ++i) wrong += data[i] != int32_t(world * i + world * (world - 1) / 2);
          CHECK(wrong == 0);
        }
        auto part = comm.duplicate();
        REQUIRE(part.ok());
        CHECK(part->barrier().ok());
      });
}

TEST_CASE("tls: who listens in sees nothing of the data, nor of the control messages") {
  const std::string plain = overheard(false), sealed = overheard(true);
  CHECK(contains(plain, marker));
  CHECK_FALSE(contains(sealed, marker));
  CHECK(contains(plain, "halving_doubling"));  // in the welcome of rank 0
  CHECK_FALSE(contains(sealed, "halving_doubling"));
}

TEST_CASE("tls: a byte altered under way is an error at once, not a wrong sum") {
  auto options = tls_options(2);
  const uint16_t port = free_port();
  Proxy links(port);
  options[1].ports = std::to_string(port);
  options[1].advertise = links.address();
  std::atomic<int> failed{0};
  std::barrier all_well(2, [&]() noexcept { links.alter(); });
  on_ranks(options, [&](Communicator& comm) {
    std::vector<float> data(100'000, 1.f);
    CHECK(comm.all_reduce(std::span(data)).ok());
    CHECK(comm.barrier().ok());
    all_well.arrive_and_wait();
    const auto began = Clock::now();
    const auto result = comm.all_reduce(std::span(data));
    if (!result.ok()) ++failed;
    if (!result.ok() && result.error().peer) CHECK(result.error().peer == 1 - comm.rank());
    CHECK(since(began) < milliseconds(2000));
  });
  CHECK(failed == 2);
}

TEST_CASE("tls: on one side only is refused, and the error names both") {
  for (const Rank odd : {0u, 1u})
    for (const std::string& root : {"127.0.0.1:" + std::to_string(free_port()), unix_root()}) {
      std::vector<Options> options{options_for(0, 2, root, 1.0), options_for(1, 2, root)};
      options[odd].tls = true;
      auto seats = join_all(options);
      REQUIRE(seats[1].error);
      CAPTURE(seats[1].error->message);
      CHECK(seats[1].error->code == ErrorCode::refused);
      CHECK(seats[1].took.count() < 1.0);
      CHECK(contains(seats[1].error->message, "rank 1 (pid"));
      CHECK(contains(seats[1].error->message, "rank 0 at " + root));
      CHECK(contains(
          seats[1].error->message,
          odd == 1 ? "the other side does not use TLS (RONDO_TLS=0), this side uses TLS (RONDO_TLS=1)"
                   : "the other side uses TLS (RONDO_TLS=1), this side does not use TLS (RONDO_TLS=0)"));
      REQUIRE(seats[0].error);
      CHECK(contains(seats[0].error->message, "RONDO_TLS"));
    }
}

TEST_CASE("tls: a wrong secret is refused as without") {
  auto options = std::vector<Options>{options_for(0, 2, unix_root(), 1.0), options_for(1, 2, "")};
  options[0].root = options[1].root = "127.0.0.1:" + std::to_string(free_port());
  options[0].tls = options[1].tls = true;
  options[1].secret = "another secret";
  auto seats = join_all(options);
  REQUIRE(seats[1].error);
  CHECK(seats[1].error->code == ErrorCode::refused);
  CHECK(contains(seats[1].error->message, "the secrets differ"));
}

TEST_CASE("tls: without a secret it is an error that says what to do") {
  auto options = tls_options(2)[0];
  options.secret.clear();
  const auto comm = Communicator::create(options);
  REQUIRE_FALSE(comm.ok());
  CHECK(comm.error().code == ErrorCode::invalid_argument);
  CHECK(contains(comm.error().message, "Options::tls=1"));
  CHECK(contains(comm.error().message, "RONDO_SECRET"));
}

TEST_CASE("tls: a rank that leaves in the middle is named by every other rank") {
  std::atomic<int> named{0};
  on_ranks(tls_options(3), [&](Communicator& comm) {
    std::vector<float> data(1 << 18, 1.f);
    CHECK(comm.all_reduce(std::span(data)).ok());
    if (comm.rank() == 2) return;
    const auto began = Clock::now();
    const auto result = comm.all_reduce(std::span(data));
    REQUIRE_FALSE(result.ok());
    CHECK(since(began) < milliseconds(2000));
    CHECK(result.error().code == ErrorCode::peer_lost);
    if (result.error().peer == 2u) named++;
  });
  CHECK(named == 2);
}

TEST_CASE("tls: what comes of a communicator is under TLS too: the ranks that are left find each other") {
  for (const Rank gone : {0u, 2u})
    on_ranks(tls_options(4), [&](Communicator& comm) {
      CHECK(comm.barrier().ok());
      if (comm.rank() == gone) return;
      auto rest = comm.shrink();
      REQUIRE_MESSAGE(rest.ok(), (rest ? "" : rest.error().message));
      CHECK(rest->transport() == "tcp");
      std::vector<Rank> all(3), own{comm.rank()};
      CHECK(rest->all_gather(std::span<const Rank>(own), std::span(all)).ok());
      CHECK(all == rest->parent_ranks());
      CHECK(std::ranges::count(all, gone) == 0);
    });
}

TEST_CASE("tls: descriptors are what they were once the communicators are gone") {
  const auto cycle = [] { on_ranks(tls_options(3), [](Communicator& comm) { CHECK(comm.barrier().ok()); }); };
  cycle();
  const auto before = open_descriptors().size();
  for (int i = 0; i < 5; ++i) cycle();
  CHECK(open_descriptors().size() == before);
}
