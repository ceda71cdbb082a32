// Work::on_end: when and where callbacks come, and what they may do.
#include <atomic>
#include <optional>

#include "base/clock.hpp"
#include "work.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;

namespace {

// Rank 1's operation ends when rank 0 has come, 50 ms later: by the service thread, or by a thread that waits.
Work ends_later(Communicator& comm, std::vector<float>& data) {
  if (comm.rank() == 0) std::this_thread::sleep_for(milliseconds(50));
  return begun(comm.async_all_reduce(std::span(data)));
}

}  // namespace

TEST_CASE("callbacks: one comes once, when the operation has ended, and several in their order") {
  on_every_transport(2, [](Communicator& comm) {
    std::vector<float> data(100'000, 1);
    std::atomic<int> called{0};
    Work work = ends_later(comm, data);
    work.on_end([&] { called = called * 10 + 1; });
    work.on_end([&] { called = called * 10 + 2; });
    CHECK(work.wait().ok());
    CHECK(eventually([&] { return called >= 12; }));
    work.on_end([&] { called = called * 10 + 3; });  // it has ended: now
    CHECK(called == 123);
  });
}

TEST_CASE("callbacks: one that makes calls of its own, and waits for them, is no deadlock") {
  for (const bool waits : {false, true})
    on_every_transport(2, [&](Communicator& comm) {
      std::vector<float> data(100, 1), inner(100, 1), queued(100, 1);
      CHECK(comm.barrier().ok());  // the links are there
      std::atomic<bool> done{false};
      Work work = ends_later(comm, data);
      Work next = begun(comm.async_all_reduce(std::span(queued)));
      const auto call = [&] {
        CHECK(comm.all_reduce(std::span(inner)).ok());
        CHECK(next.test());  // it came first
        done = true;
      };
      // The ranks of this test share a service thread, so only one of them may wait on it.
      if (comm.rank() == 1)
        work.on_end(call);
      else
        call();
      if (waits) CHECK(work.wait().ok());
      CHECK(eventually([&] { return done.load(); }));
      CHECK(inner == std::vector<float>(100, 2));
      CHECK(queued == std::vector<float>(100, 2));
    });
}

TEST_CASE("callbacks: on the library's thread no communicator can be made, and the error comes at once") {
  std::atomic<bool> is_waiting{false}, done{false};
  const auto refused = [](const auto& made) {
    REQUIRE(!made.ok());
    CHECK(made.error().code == ErrorCode::invalid_argument);
    CHECK(made.error().message.find("a callback on the library's own thread") != std::string::npos);
  };
  on_every_transport(2, [&](Communicator& comm) {
    std::vector<float> data(100, 1);
    if (comm.rank() == 0) CHECK(eventually([&] { return is_waiting.load(); }));
    Work work = begun(comm.async_all_reduce(std::span(data)));
    if (comm.rank() == 1) {
      work.on_end([&] {
        const auto began = Clock::now();
        Options options;
        options.rank = 0, options.world = 2, options.root = "unix:@rondo-test-nobody", options.secret = "s";
        refused(comm.split(0));
        refused(comm.duplicate());
        refused(comm.shrink());
        refused(comm.grow(1));
        refused(Communicator::create(options));
        CHECK(since(began) < milliseconds(500));
        done = true;
      });
      is_waiting = true;
      CHECK(eventually([&] { return done.load(); }));
      is_waiting = done = false;
    }
    CHECK(work.wait().ok());
    CHECK(comm.barrier().ok());
    CHECK(comm.duplicate().ok());
  });
}

TEST_CASE("callbacks: one that destroys its communicator ends what is queued, and holds nobody up") {
  for (const bool waits : {false, true})
    on_every_transport(2, [&](Communicator& comm) {
      auto other = comm.duplicate();
      REQUIRE(other.ok());
      std::optional<Communicator> doomed(std::move(*other));
      std::vector<float> data(100, 1), queued(100, 1);
      CHECK(doomed->barrier().ok());
      std::atomic<bool> done{false};
      Work work = ends_later(*doomed, data);
      // Only this rank calls it, so it cannot end well.
      std::optional<Work> stuck;
      if (comm.rank() == 0) stuck.emplace(begun(doomed->async_barrier()));
      work.on_end([&] {
        const auto began = Clock::now();
        doomed.reset();
        CHECK(since(began) < milliseconds(1000));
        done = true;
      });
      if (waits) CHECK(work.wait().ok());
      CHECK(eventually([&] { return done.load(); }));
      if (stuck) CHECK(stuck->wait().error().code != ErrorCode::timeout);
      stuck.reset();
      CHECK(work.wait().ok());
      CHECK(comm.barrier().ok());
      CHECK(comm.duplicate().ok());  // the service thread is at work
    });
}
