// rondo::Communicator: collective operations among the ranks of a job.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rondo/call.hpp"
#include "rondo/options.hpp"
#include "rondo/result.hpp"
#include "rondo/types.hpp"
#include "rondo/work.hpp"

namespace rondo {

namespace engine {
struct Call;
enum class PartOf : uint8_t;
}  // namespace engine

/// The ranks of a job and the operations among them. Move-only; destruction is local (never waits for peers)
/// and takes well under a second. Operations block until this rank's part is complete and its buffers are its
/// own again; every rank must call the same operations in the same order. Any thread may call; calls on one
/// communicator run one after another. Any error but invalid_argument fails the communicator on every rank: a rank that learns of
/// it between two calls gets it from its next call, every call after that returns `aborted` with the first
/// error's text. The buffers of a failed call are undefined.
///
/// Counts may be anything, 0 and fewer than ranks included. Buffers of one call must be equal or disjoint
/// where in-place is allowed, disjoint elsewhere; a partial overlap is refused before anything is sent.
///
/// Every operation has a typed form on spans, an untyped one on pointers (as NCCL has it), and the same two as
/// async_..., which return at once with a Work. What is wrong with the arguments is then an error of the call and
/// nothing is sent; everything else is the Work's. Blocking and asynchronous operations run in the order of their
/// calls, one at a time, and any number may wait for their turn. A deadline counts from the call, so it includes
/// that wait.
class Communicator {
 public:
  /// Joins the job described by the environment of `rondo run` or torchrun; options given in code win.
  /// Errors: invalid_argument (a variable is missing or wrong), timeout (names the ranks that did not join),
  /// refused (wrong secret or version), system. A rank whose settings are wrong first looks for rank 0, for two seconds at
  /// most, to tell all others why it cannot come.
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

  // ---- Reductions

  /// data[i] = reduction over ranks of data[i].
  template <Element T, size_t N>
  Result<void> all_reduce(std::span<T, N> data, Reduction reduction = Reduction::sum,
                          const CallOptions& call = {}) {
    return all_reduce(data.data(), data.data(), data.size(), data_type_of<T>, reduction, call);
  }
  template <Element T, size_t N>
  Result<Work> async_all_reduce(std::span<T, N> data, Reduction reduction = Reduction::sum,
                                const CallOptions& call = {}) {
    return async_all_reduce(data.data(), data.data(), data.size(), data_type_of<T>, reduction, call);
  }
  /// output[i] = reduction over ranks of input[i]; the sizes must be equal.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> all_reduce(std::span<In, N> input, std::span<T, M> output,
                          Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("all_reduce", input.size(), output.size()); !fits) return fits.error();
    return all_reduce(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_all_reduce(std::span<In, N> input, std::span<T, M> output,
                                Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("all_reduce", input.size(), output.size()); !fits) return fits.error();
    return async_all_reduce(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  /// output = this rank's shard of the reduction over ranks of input; output.size() must be
  /// shard(input.size()).count. In place when output is that shard of input.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> reduce_scatter(std::span<In, N> input, std::span<T, M> output,
                              Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("reduce_scatter", shard(input.size()).count, output.size()); !fits)
      return fits.error();
    return reduce_scatter(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_reduce_scatter(std::span<In, N> input, std::span<T, M> output,
                                    Reduction reduction = Reduction::sum, const CallOptions& call = {}) {
    if (auto fits = same_size("reduce_scatter", shard(input.size()).count, output.size()); !fits)
      return fits.error();
    return async_reduce_scatter(input.data(), output.data(), input.size(), data_type_of<T>, reduction, call);
  }
  /// The same, rank r's part having counts[r] elements, one after another; their sum is input.size(). The
  /// counts must be the same on every rank.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> reduce_scatter_v(std::span<In, N> input, std::span<T, M> output,
                                std::span<const size_t> counts, Reduction reduction = Reduction::sum,
                                const CallOptions& call = {}) {
    if (auto fits = fits_parts("reduce_scatter_v", counts, input.size(), output.size()); !fits)
      return fits.error();
    return reduce_scatter_v(input.data(), output.data(), counts, data_type_of<T>, reduction, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_reduce_scatter_v(std::span<In, N> input, std::span<T, M> output,
                                      std::span<const size_t> counts, Reduction reduction = Reduction::sum,
                                      const CallOptions& call = {}) {
    if (auto fits = fits_parts("reduce_scatter_v", counts, input.size(), output.size()); !fits)
      return fits.error();
    return async_reduce_scatter_v(input.data(), output.data(), counts, data_type_of<T>, reduction, call);
  }
  /// The root's output[i] = reduction over ranks of input[i]. The others' output is not touched and may be
  /// empty. In place when the root's are equal.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> reduce(std::span<In, N> input, std::span<T, M> output, Reduction reduction = Reduction::sum,
                      Rank root = 0, const CallOptions& call = {}) {
    if (auto fits = same_size_at(root, "reduce", input.size(), output.size()); !fits) return fits.error();
    return reduce(input.data(), output.data(), input.size(), data_type_of<T>, reduction, root, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_reduce(std::span<In, N> input, std::span<T, M> output,
                            Reduction reduction = Reduction::sum, Rank root = 0,
                            const CallOptions& call = {}) {
    if (auto fits = same_size_at(root, "reduce", input.size(), output.size()); !fits) return fits.error();
    return async_reduce(input.data(), output.data(), input.size(), data_type_of<T>, reduction, root, call);
  }

  // ---- Movements

  /// output = every rank's input, one after another in rank order; input.size() must be
  /// shard(output.size()).count. In place when input is that shard of output.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> all_gather(std::span<In, N> input, std::span<T, M> output, const CallOptions& call = {}) {
    if (auto fits = same_size("all_gather", shard(output.size()).count, input.size()); !fits)
      return fits.error();
    return all_gather(input.data(), output.data(), output.size(), data_type_of<T>, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_all_gather(std::span<In, N> input, std::span<T, M> output,
                                const CallOptions& call = {}) {
    if (auto fits = same_size("all_gather", shard(output.size()).count, input.size()); !fits)
      return fits.error();
    return async_all_gather(input.data(), output.data(), output.size(), data_type_of<T>, call);
  }
  /// The same with counts[r] elements from rank r; their sum is output.size(). The counts must be the same on
  /// every rank.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> all_gather_v(std::span<In, N> input, std::span<T, M> output, std::span<const size_t> counts,
                            const CallOptions& call = {}) {
    if (auto fits = fits_parts("all_gather_v", counts, output.size(), input.size()); !fits)
      return fits.error();
    return all_gather_v(input.data(), output.data(), counts, data_type_of<T>, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_all_gather_v(std::span<In, N> input, std::span<T, M> output,
                                  std::span<const size_t> counts, const CallOptions& call = {}) {
    if (auto fits = fits_parts("all_gather_v", counts, output.size(), input.size()); !fits)
      return fits.error();
    return async_all_gather_v(input.data(), output.data(), counts, data_type_of<T>, call);
  }
  /// data = root's data on every rank.
  template <Element T, size_t N>
  Result<void> broadcast(std::span<T, N> data, Rank root = 0, const CallOptions& call = {}) {
    return broadcast(data.data(), data.size(), data_type_of<T>, root, call);
  }
  template <Element T, size_t N>
  Result<Work> async_broadcast(std::span<T, N> data, Rank root = 0, const CallOptions& call = {}) {
    return async_broadcast(data.data(), data.size(), data_type_of<T>, root, call);
  }
  /// The root's output = every rank's input, in rank order: world() times input.size() elements, which must be
  /// the same on every rank. The others' output may be empty. In place when the root's input lies at its place.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> gather(std::span<In, N> input, std::span<T, M> output, Rank root = 0,
                      const CallOptions& call = {}) {
    if (auto fits = same_size_at(root, "gather", input.size() * world(), output.size()); !fits)
      return fits.error();
    return gather(input.data(), output.data(), input.size(), data_type_of<T>, root, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_gather(std::span<In, N> input, std::span<T, M> output, Rank root = 0,
                            const CallOptions& call = {}) {
    if (auto fits = same_size_at(root, "gather", input.size() * world(), output.size()); !fits)
      return fits.error();
    return async_gather(input.data(), output.data(), input.size(), data_type_of<T>, root, call);
  }
  /// output = this rank's part of the root's input, which has world() times output.size() elements. The
  /// others' input may be empty. In place when the root's output lies at its place.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> scatter(std::span<In, N> input, std::span<T, M> output, Rank root = 0,
                       const CallOptions& call = {}) {
    if (auto fits = same_size_at(root, "scatter", output.size() * world(), input.size()); !fits)
      return fits.error();
    return scatter(input.data(), output.data(), output.size(), data_type_of<T>, root, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_scatter(std::span<In, N> input, std::span<T, M> output, Rank root = 0,
                             const CallOptions& call = {}) {
    if (auto fits = same_size_at(root, "scatter", output.size() * world(), input.size()); !fits)
      return fits.error();
    return async_scatter(input.data(), output.data(), output.size(), data_type_of<T>, root, call);
  }
  /// Part r of output = part rank() of rank r's input; all parts of all ranks have the same size, the buffers
  /// world() of them. Never in place.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> all_to_all(std::span<In, N> input, std::span<T, M> output, const CallOptions& call = {}) {
    if (auto fits = same_parts("all_to_all", input.size(), output.size()); !fits) return fits.error();
    return all_to_all(input.data(), output.data(), input.size() / std::max(1u, world()), data_type_of<T>,
                      call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_all_to_all(std::span<In, N> input, std::span<T, M> output,
                                const CallOptions& call = {}) {
    if (auto fits = same_parts("all_to_all", input.size(), output.size()); !fits) return fits.error();
    return async_all_to_all(input.data(), output.data(), input.size() / std::max(1u, world()),
                            data_type_of<T>, call);
  }
  /// The same with send_counts[r] elements for rank r and recv_counts[r] from it, one part after another. What
  /// one rank sends to another, that one must expect.
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> all_to_all_v(std::span<In, N> input, std::span<const size_t> send_counts,
                            std::span<T, M> output, std::span<const size_t> recv_counts,
                            const CallOptions& call = {}) {
    if (auto fits = fits_pairs("all_to_all_v", send_counts, input.size(), recv_counts, output.size()); !fits)
      return fits.error();
    return all_to_all_v(input.data(), send_counts, output.data(), recv_counts, data_type_of<T>, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_all_to_all_v(std::span<In, N> input, std::span<const size_t> send_counts,
                                  std::span<T, M> output, std::span<const size_t> recv_counts,
                                  const CallOptions& call = {}) {
    if (auto fits = fits_pairs("all_to_all_v", send_counts, input.size(), recv_counts, output.size()); !fits)
      return fits.error();
    return async_all_to_all_v(input.data(), send_counts, output.data(), recv_counts, data_type_of<T>, call);
  }

  // ---- Between two ranks. The calls of two ranks with each other must match in order, type and size; others need not
  // call. They take their turn among the other operations, so that two ranks which both send first wait for each
  // other until one of them receives: send_recv does both at once.

  template <Element T, size_t N>
  Result<void> send(std::span<T, N> data, Rank to, const CallOptions& call = {}) {
    return send(data.data(), data.size(), data_type_of<T>, to, call);
  }
  template <Element T, size_t N>
  Result<Work> async_send(std::span<T, N> data, Rank to, const CallOptions& call = {}) {
    return async_send(data.data(), data.size(), data_type_of<T>, to, call);
  }
  template <Element T, size_t N>
  Result<void> recv(std::span<T, N> data, Rank from, const CallOptions& call = {}) {
    return recv(data.data(), data.size(), data_type_of<T>, from, call);
  }
  template <Element T, size_t N>
  Result<Work> async_recv(std::span<T, N> data, Rank from, const CallOptions& call = {}) {
    return async_recv(data.data(), data.size(), data_type_of<T>, from, call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<void> send_recv(std::span<In, N> input, Rank to, std::span<T, M> output, Rank from,
                         const CallOptions& call = {}) {
    return send_recv(input.data(), input.size(), to, output.data(), output.size(), from, data_type_of<T>,
                     call);
  }
  template <Element T, InputOf<T> In, size_t N, size_t M>
  Result<Work> async_send_recv(std::span<In, N> input, Rank to, std::span<T, M> output, Rank from,
                               const CallOptions& call = {}) {
    return async_send_recv(input.data(), input.size(), to, output.data(), output.size(), from,
                           data_type_of<T>, call);
  }

  // ---- Others

  /// Returns when every rank has called it.
  Result<void> barrier(const CallOptions& call = {});
  Result<Work> async_barrier(const CallOptions& call = {});
  /// Many small vectors as one all_reduce: they are copied together and back, and cost one operation.
  Result<void> all_reduce_group(std::span<const Tensor> tensors, DataType type,
                                Reduction reduction = Reduction::sum, const CallOptions& call = {});
  Result<Work> async_all_reduce_group(std::span<const Tensor> tensors, DataType type,
                                      Reduction reduction = Reduction::sum, const CallOptions& call = {});

  // ---- Untyped. `count` is in elements: of the whole vector in all_reduce, reduce, reduce_scatter, all_gather and
  // broadcast, of one rank's part in gather, scatter and all_to_all.

  Result<void> all_reduce(const void* input, void* output, size_t count, DataType type, Reduction reduction,
                          const CallOptions& call = {});
  Result<Work> async_all_reduce(const void* input, void* output, size_t count, DataType type,
                                Reduction reduction, const CallOptions& call = {});
  Result<void> reduce_scatter(const void* input, void* output, size_t count, DataType type,
                              Reduction reduction, const CallOptions& call = {});
  Result<Work> async_reduce_scatter(const void* input, void* output, size_t count, DataType type,
                                    Reduction reduction, const CallOptions& call = {});
  Result<void> reduce_scatter_v(const void* input, void* output, std::span<const size_t> counts,
                                DataType type, Reduction reduction, const CallOptions& call = {});
  Result<Work> async_reduce_scatter_v(const void* input, void* output, std::span<const size_t> counts,
                                      DataType type, Reduction reduction, const CallOptions& call = {});
  Result<void> reduce(const void* input, void* output, size_t count, DataType type, Reduction reduction,
                      Rank root, const CallOptions& call = {});
  Result<Work> async_reduce(const void* input, void* output, size_t count, DataType type, Reduction reduction,
                            Rank root, const CallOptions& call = {});
  Result<void> all_gather(const void* input, void* output, size_t count, DataType type,
                          const CallOptions& call = {});
  Result<Work> async_all_gather(const void* input, void* output, size_t count, DataType type,
                                const CallOptions& call = {});
  Result<void> all_gather_v(const void* input, void* output, std::span<const size_t> counts, DataType type,
                            const CallOptions& call = {});
  Result<Work> async_all_gather_v(const void* input, void* output, std::span<const size_t> counts,
                                  DataType type, const CallOptions& call = {});
  Result<void> broadcast(void* data, size_t count, DataType type, Rank root, const CallOptions& call = {});
  Result<Work> async_broadcast(void* data, size_t count, DataType type, Rank root,
                               const CallOptions& call = {});
  Result<void> gather(const void* input, void* output, size_t count, DataType type, Rank root,
                      const CallOptions& call = {});
  Result<Work> async_gather(const void* input, void* output, size_t count, DataType type, Rank root,
                            const CallOptions& call = {});
  Result<void> scatter(const void* input, void* output, size_t count, DataType type, Rank root,
                       const CallOptions& call = {});
  Result<Work> async_scatter(const void* input, void* output, size_t count, DataType type, Rank root,
                             const CallOptions& call = {});
  Result<void> all_to_all(const void* input, void* output, size_t count, DataType type,
                          const CallOptions& call = {});
  Result<Work> async_all_to_all(const void* input, void* output, size_t count, DataType type,
                                const CallOptions& call = {});
  Result<void> all_to_all_v(const void* input, std::span<const size_t> send_counts, void* output,
                            std::span<const size_t> recv_counts, DataType type, const CallOptions& call = {});
  Result<Work> async_all_to_all_v(const void* input, std::span<const size_t> send_counts, void* output,
                                  std::span<const size_t> recv_counts, DataType type,
                                  const CallOptions& call = {});
  Result<void> send(const void* data, size_t count, DataType type, Rank to, const CallOptions& call = {});
  Result<Work> async_send(const void* data, size_t count, DataType type, Rank to,
                          const CallOptions& call = {});
  Result<void> recv(void* data, size_t count, DataType type, Rank from, const CallOptions& call = {});
  Result<Work> async_recv(void* data, size_t count, DataType type, Rank from, const CallOptions& call = {});
  Result<void> send_recv(const void* input, size_t send_count, Rank to, void* output, size_t recv_count,
                         Rank from, DataType type, const CallOptions& call = {});
  Result<Work> async_send_recv(const void* input, size_t send_count, Rank to, void* output, size_t recv_count,
                               Rank from, DataType type, const CallOptions& call = {});

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
  /// After a failure, whatever it was: the ranks that are left, in the order of their ranks here, as a new communicator.
  /// All of them must call it; ranks that have died or do not answer are left out. On one that has not failed:
  /// all ranks. Once it has succeeded, only the new communicator can be shrunk. Waits for the others until the call's
  /// deadline. Errors: timeout (names those that have not called it; it may be called again), peer_lost (the others have
  /// gone on without this rank), system. docs/failures.md has the loop in which it is used.
  Result<Communicator> shrink(const CallOptions& call = {});
  /// These ranks, as they are, and `newcomers` more: processes that join with create() or from_environment(), with
  /// RONDO_ROOT = `root`, RONDO_WORLD = world() + newcomers, the next numbers as RONDO_RANK, and the secret of this job; they may
  /// come before the call. `root` is of rank 0's machine; empty: the one by which this job has met, after a shrink too.
  /// Waits at most the call's timeout, else the init timeout. All ranks succeed or none; afterwards only the result can be shrunk.
  /// Errors: those of an operation, after which shrink() tells what became of it; and those of create(), which do not fail this
  /// communicator: timeout (names those that have not come), mismatch (ranks differ in the arguments), peer_lost.
  Result<Communicator> grow(uint32_t newcomers, std::string_view root = {}, const CallOptions& call = {});
  /// Of one that came of split, duplicate or shrink: each rank's rank in the communicator that it came from. Else empty.
  std::vector<Rank> parent_ranks() const;

 private:
  class State;
  explicit Communicator(std::unique_ptr<State> state) noexcept;
  using Tensors = std::optional<std::span<const Tensor>>;
  Result<void> run(engine::Call call, const CallOptions& options, const Tensors& group = {});
  Result<Work> submit(engine::Call call, const CallOptions& options, const Tensors& group = {});
  Result<std::optional<Communicator>> split_as(engine::PartOf caller, std::optional<uint32_t> color,
                                               int64_t key, const CallOptions& options);
  static Result<void> same_size(const char* operation, size_t expected, size_t given);
  Result<void> same_size_at(Rank root, const char* operation, size_t expected, size_t given) const;
  Result<void> same_parts(const char* operation, size_t input, size_t output) const;
  Result<void> fits_parts(const char* operation, std::span<const size_t> counts, size_t whole,
                          size_t part) const;
  Result<void> fits_pairs(const char* operation, std::span<const size_t> send_counts, size_t input,
                          std::span<const size_t> recv_counts, size_t output) const;

  std::unique_ptr<State> state_;
};

}  // namespace rondo
