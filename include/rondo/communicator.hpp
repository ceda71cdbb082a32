// rondo::Communicator: collective operations among the ranks of a job.
#pragma once
#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "rondo/options.hpp"
#include "rondo/result.hpp"
#include "rondo/types.hpp"
#include "rondo/work.hpp"

namespace rondo {

namespace engine {
struct Call;
}

/// Per-call settings.
struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout;  ///< of this call; else the communicator's
};

/// What this rank has sent in all operations that have ended (and maybe more) since its communicator was
/// made; readable at any time, also during an operation. Payload is user data (or partials of it); headers
/// are all that Rondo adds. A full-width ring all-reduce of m bytes sends exactly 2(N-1)m payload bytes over
/// all ranks.
struct Counters {
  uint64_t operations = 0, payload_bytes_sent = 0, header_bytes_sent = 0;
};

/// The ranks of a job and the operations among them. Move-only; destruction is local (never waits for peers)
/// and takes well under a second. Operations block until this rank's part is complete and its buffers are its
/// own again; every rank must call the same operations in the same order. Any thread may call; calls on one
/// communicator run one after another. Any error but invalid_argument fails the communicator on every rank: a rank that learns of
/// it between two calls gets it from its next call, every call after that returns `aborted` with the first
/// error's text. The buffers of a failed call are undefined.
///
/// Counts may be anything, 0 and fewer than ranks included. Buffers of one call must be equal or disjoint
/// where in-place is allowed, disjoint elsewhere; a partial overlap is refused before anything is sent.
class Communicator {
 public:
  /// Joins the job described by the environment of `rondo run` or torchrun; options given in code win.
  /// Errors: invalid_argument (a variable is missing or wrong), timeout (names the ranks that did not join),
  /// refused (wrong secret or version), system.
  static Result<Communicator> from_environment(const Options& options = {});
  /// Joins with `options` alone; rank and world must be set, and root unless world is 1.
  static Result<Communicator> create(const Options& options);

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  /// One that was moved from has rank 0 of a world of 0, and its calls return invalid_argument.
  Rank rank() const noexcept;
  uint32_t world() const noexcept;
  /// What carries the data: "shm" (shared memory), "tcp", or "local" in a world of one.
  std::string_view transport() const noexcept;
  /// The part of `count` elements that belongs to this rank in reduce_scatter and all_gather.
  Extent shard(uint64_t count) const noexcept { return rondo::shard(count, world(), rank()); }
  /// "ring", "direct", ...: what the last operation that has begun runs.
  std::string_view last_algorithm() const noexcept;
  Counters counters() const noexcept;

  /// Fails every pending and later call on this communicator, here and on the peers, with `aborted`. Any
  /// thread; idempotent; never waits for peers.
  void abort() noexcept;

  /// data[i] = reduction over ranks of data[i].
  template <Element T, size_t N>
  Result<void> all_reduce(std::span<T, N> data, Reduction reduction = Reduction::sum,
                          const CallOptions& call = {}) {
    return all_reduce(data.data(), data.data(), data.size(), data_type_of<T>, reduction, call);
  }
  /// output[i] = reduction over ranks of input[i]; the sizes must be equal.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> all_reduce(std::span<In, N> input, std::span<T, M> output,
                          Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("all_reduce", input.size(), output.size()); !fits) return fits;
    return all_reduce(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  /// output = this rank's shard of the reduction over ranks of input; output.size() must be
  /// shard(input.size()).count. In place when output is that shard of input.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> reduce_scatter(std::span<In, N> input, std::span<T, M> output,
                              Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("reduce_scatter", shard(input.size()).count, output.size()); !fits) return fits;
    return reduce_scatter(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  /// output = every rank's input, one after another in rank order; input.size() must be
  /// shard(output.size()).count. In place when input is that shard of output.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> all_gather(std::span<In, N> input, std::span<T, M> output, const CallOptions& call = {}) {
    if (auto fits = same_size("all_gather", shard(output.size()).count, input.size()); !fits) return fits;
    return all_gather(input.data(), output.data(), output.size(), data_type_of<T>, call);
  }
  /// data = root's data on every rank.
  template <Element T, size_t N>
  Result<void> broadcast(std::span<T, N> data, Rank root = 0, const CallOptions& call = {}) {
    return broadcast(data.data(), data.size(), data_type_of<T>, root, call);
  }
  /// Returns when every rank has called it.
  Result<void> barrier(const CallOptions& call = {});

  // The same, untyped: `count` is that of the whole vector, in elements.
  Result<void> all_reduce(const void* input, void* output, size_t count, DataType type, Reduction reduction,
                          const CallOptions& call = {});
  Result<void> reduce_scatter(const void* input, void* output, size_t count, DataType type,
                              Reduction reduction, const CallOptions& call = {});
  Result<void> all_gather(const void* input, void* output, size_t count, DataType type,
                          const CallOptions& call = {});
  Result<void> broadcast(void* data, size_t count, DataType type, Rank root, const CallOptions& call = {});

  // ---- More communicators, from the ranks of this one. Every rank must call, in the same order as its other
  // operations. Each has links and a state of its own: operations on it and on this one need no common order,
  // may run at once from different threads, and either may be destroyed first. A failure of one is none of
  // the other; but the death of a process fails every communicator that it is in.

  /// The ranks that give the same color become a communicator, ordered by key, then by their rank here. A
  /// rank without a color is in none and gets nothing. Waits for the others of its color at most the init
  /// timeout. Errors: those of an operation, and of create(); the latter do not fail this communicator.
  Result<std::optional<Communicator>> split(std::optional<uint32_t> color, int64_t key = 0,
                                            const CallOptions& call = {});
  /// The same ranks in the same order once more.
  Result<Communicator> duplicate(const CallOptions& call = {});

  // ---- Asynchronous: the same operations, which return at once; see Work. What is wrong with the arguments
  // is an error of the call and nothing is sent; everything else is the Work's. Blocking and asynchronous
  // operations of a communicator run in the order of their calls, one at a time, and any number may wait for
  // their turn. A deadline counts from the call, so it includes that wait.

  template <Element T, size_t N>
  Result<Work> async_all_reduce(std::span<T, N> data, Reduction reduction = Reduction::sum,
                                const CallOptions& call = {}) {
    return async_all_reduce(data.data(), data.data(), data.size(), data_type_of<T>, reduction, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_all_reduce(std::span<In, N> input, std::span<T, M> output,
                                Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("all_reduce", input.size(), output.size()); !fits) return fits.error();
    return async_all_reduce(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_reduce_scatter(std::span<In, N> input, std::span<T, M> output,
                                    Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("reduce_scatter", shard(input.size()).count, output.size()); !fits)
      return fits.error();
    return async_reduce_scatter(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_all_gather(std::span<In, N> input, std::span<T, M> output,
                                const CallOptions& call = {}) {
    if (auto fits = same_size("all_gather", shard(output.size()).count, input.size()); !fits)
      return fits.error();
    return async_all_gather(input.data(), output.data(), output.size(), data_type_of<T>, call);
  }
  template <Element T, size_t N>
  Result<Work> async_broadcast(std::span<T, N> data, Rank root = 0, const CallOptions& call = {}) {
    return async_broadcast(data.data(), data.size(), data_type_of<T>, root, call);
  }
  Result<Work> async_barrier(const CallOptions& call = {});

  Result<Work> async_all_reduce(const void* input, void* output, size_t count, DataType type,
                                Reduction reduction, const CallOptions& call = {});
  Result<Work> async_reduce_scatter(const void* input, void* output, size_t count, DataType type,
                                    Reduction reduction, const CallOptions& call = {});
  Result<Work> async_all_gather(const void* input, void* output, size_t count, DataType type,
                                const CallOptions& call = {});
  Result<Work> async_broadcast(void* data, size_t count, DataType type, Rank root,
                               const CallOptions& call = {});

 private:
  class State;
  explicit Communicator(std::unique_ptr<State> state) noexcept;
  Result<void> run(const engine::Call& call, const CallOptions& options);
  Result<Work> submit(const engine::Call& call, const CallOptions& options);
  static Result<void> same_size(const char* operation, size_t expected, size_t given);

  std::unique_ptr<State> state_;
};

}  // namespace rondo
