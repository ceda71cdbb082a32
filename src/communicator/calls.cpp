// The public operations: their arguments become an engine::Call.
#include <fmt/format.h>

#include "engine/call.hpp"
#include "rondo/communicator.hpp"

namespace rondo {
namespace {

using engine::Call;
using schedule::Operation;
using schedule::Parts;

Call call_of(Operation operation, const void* input, void* output, size_t count, DataType type,
             Rank root = 0) {
  Call call{.operation = operation};
  call.type = type;
  call.count = count;
  call.root = root;
  call.input = static_cast<const std::byte*>(input);
  call.output = static_cast<std::byte*>(output);
  return call;
}

Call reducing(Operation operation, const void* input, void* output, size_t count, DataType type,
              Reduction reduction, Rank root = 0) {
  Call call = call_of(operation, input, output, count, type, root);
  call.reduction = reduction;
  return call;
}

// One part for every rank, all of `count` elements. A product that does not fit is refused as too large.
uint64_t whole(size_t count, uint32_t world) {
  uint64_t product = 0;
  return __builtin_mul_overflow(uint64_t(count), uint64_t(world), &product) ? UINT64_MAX : product;
}

// A sum that does not fit is refused as too large.
std::vector<uint64_t> beginnings(std::span<const size_t> counts) {
  std::vector<uint64_t> first{0};
  for (const size_t count : counts) {
    uint64_t next = 0;
    first.push_back(__builtin_add_overflow(first.back(), uint64_t(count), &next) ? UINT64_MAX : next);
  }
  return first;
}

Call uneven(Call call, std::span<const size_t> in, std::span<const size_t> out) {
  call.parts = std::make_shared<const Parts>(Parts{beginnings(in), beginnings(out)});
  call.count = std::max(call.parts->input.back(), call.parts->output.back());
  return call;
}

Call pairwise(const void* input, size_t send_count, Rank to, void* output, size_t recv_count, Rank from,
              DataType type) {
  Call call = call_of(Operation::send_recv, input, output, 0, type);
  call.to = to;
  call.from = from;
  call.parts = std::make_shared<const Parts>(Parts{{0, send_count}, {0, recv_count}});
  return call;
}

Result<void> wrong(const char* operation, const std::string& what) {
  return Error{ErrorCode::invalid_argument, fmt::format("{}: {}", operation, what)};
}

Result<void> counts_fit(const char* operation, const char* name, std::span<const size_t> counts,
                        const char* buffer, size_t elements) {
  const uint64_t sum = beginnings(counts).back();
  if (sum != elements)
    return wrong(operation,
                 fmt::format("{} add up to {}, but {} has {} elements", name, sum, buffer, elements));
  return {};
}

}  // namespace

Result<void> Communicator::same_size(const char* operation, size_t expected, size_t given) {
  if (expected == given) return {};
  return wrong(operation, fmt::format("the second buffer must have {} elements, not {}", expected, given));
}

Result<void> Communicator::same_size_at(Rank root, const char* operation, size_t expected,
                                        size_t given) const {
  return rank() == root ? same_size(operation, expected, given) : Result<void>();
}

Result<void> Communicator::same_parts(const char* operation, size_t input, size_t output) const {
  if (auto same = same_size(operation, input, output); !same) return same;
  if (world() == 0 || input % world() == 0) return {};
  return wrong(operation, fmt::format("{} elements cannot be cut into {} equal parts; use {}_v", input,
                                      world(), operation));
}

Result<void> Communicator::fits_parts(const char* operation, std::span<const size_t> counts, size_t all,
                                      size_t part) const {
  if (!state_ || counts.size() != world()) return {};  // what is wrong is told by the call itself
  if (auto fit = counts_fit(operation, "the counts", counts, "the whole vector", all); !fit) return fit;
  if (part == counts[rank()]) return {};
  return wrong(operation, fmt::format("this rank's part must have {} elements, as counts[{}] says, not {}",
                                      counts[rank()], rank(), part));
}

Result<void> Communicator::fits_pairs(const char* operation, std::span<const size_t> send_counts,
                                      size_t input, std::span<const size_t> recv_counts,
                                      size_t output) const {
  if (!state_ || send_counts.size() != world() || recv_counts.size() != world()) return {};
  if (auto fit = counts_fit(operation, "send_counts", send_counts, "the input", input); !fit) return fit;
  return counts_fit(operation, "recv_counts", recv_counts, "the output", output);
}

// ---- Each operation twice: at once, and with a Work.

Result<void> Communicator::all_reduce(const void* input, void* output, size_t count, DataType type,
                                      Reduction reduction, const CallOptions& options) {
  return run(reducing(Operation::all_reduce, input, output, count, type, reduction), options);
}

Result<Work> Communicator::async_all_reduce(const void* input, void* output, size_t count, DataType type,
                                            Reduction reduction, const CallOptions& options) {
  return submit(reducing(Operation::all_reduce, input, output, count, type, reduction), options);
}

Result<void> Communicator::reduce_scatter(const void* input, void* output, size_t count, DataType type,
                                          Reduction reduction, const CallOptions& options) {
  return run(reducing(Operation::reduce_scatter, input, output, count, type, reduction), options);
}

Result<Work> Communicator::async_reduce_scatter(const void* input, void* output, size_t count, DataType type,
                                                Reduction reduction, const CallOptions& options) {
  return submit(reducing(Operation::reduce_scatter, input, output, count, type, reduction), options);
}

Result<void> Communicator::reduce_scatter_v(const void* input, void* output, std::span<const size_t> counts,
                                            DataType type, Reduction reduction, const CallOptions& options) {
  return run(uneven(reducing(Operation::reduce_scatter, input, output, 0, type, reduction), counts, counts),
             options);
}

Result<Work> Communicator::async_reduce_scatter_v(const void* input, void* output,
                                                  std::span<const size_t> counts, DataType type,
                                                  Reduction reduction, const CallOptions& options) {
  return submit(
      uneven(reducing(Operation::reduce_scatter, input, output, 0, type, reduction), counts, counts),
      options);
}

Result<void> Communicator::reduce(const void* input, void* output, size_t count, DataType type,
                                  Reduction reduction, Rank root, const CallOptions& options) {
  return run(reducing(Operation::reduce, input, output, count, type, reduction, root), options);
}

Result<Work> Communicator::async_reduce(const void* input, void* output, size_t count, DataType type,
                                        Reduction reduction, Rank root, const CallOptions& options) {
  return submit(reducing(Operation::reduce, input, output, count, type, reduction, root), options);
}

Result<void> Communicator::all_gather(const void* input, void* output, size_t count, DataType type,
                                      const CallOptions& options) {
  return run(call_of(Operation::all_gather, input, output, count, type), options);
}

Result<Work> Communicator::async_all_gather(const void* input, void* output, size_t count, DataType type,
                                            const CallOptions& options) {
  return submit(call_of(Operation::all_gather, input, output, count, type), options);
}

Result<void> Communicator::all_gather_v(const void* input, void* output, std::span<const size_t> counts,
                                        DataType type, const CallOptions& options) {
  return run(uneven(call_of(Operation::all_gather, input, output, 0, type), counts, counts), options);
}

Result<Work> Communicator::async_all_gather_v(const void* input, void* output, std::span<const size_t> counts,
                                              DataType type, const CallOptions& options) {
  return submit(uneven(call_of(Operation::all_gather, input, output, 0, type), counts, counts), options);
}

Result<void> Communicator::broadcast(void* data, size_t count, DataType type, Rank root,
                                     const CallOptions& options) {
  return run(call_of(Operation::broadcast, data, data, count, type, root), options);
}

Result<Work> Communicator::async_broadcast(void* data, size_t count, DataType type, Rank root,
                                           const CallOptions& options) {
  return submit(call_of(Operation::broadcast, data, data, count, type, root), options);
}

Result<void> Communicator::gather(const void* input, void* output, size_t count, DataType type, Rank root,
                                  const CallOptions& options) {
  return run(call_of(Operation::gather, input, output, whole(count, world()), type, root), options);
}

Result<Work> Communicator::async_gather(const void* input, void* output, size_t count, DataType type,
                                        Rank root, const CallOptions& options) {
  return submit(call_of(Operation::gather, input, output, whole(count, world()), type, root), options);
}

Result<void> Communicator::scatter(const void* input, void* output, size_t count, DataType type, Rank root,
                                   const CallOptions& options) {
  return run(call_of(Operation::scatter, input, output, whole(count, world()), type, root), options);
}

Result<Work> Communicator::async_scatter(const void* input, void* output, size_t count, DataType type,
                                         Rank root, const CallOptions& options) {
  return submit(call_of(Operation::scatter, input, output, whole(count, world()), type, root), options);
}

Result<void> Communicator::all_to_all(const void* input, void* output, size_t count, DataType type,
                                      const CallOptions& options) {
  return run(call_of(Operation::all_to_all, input, output, whole(count, world()), type), options);
}

Result<Work> Communicator::async_all_to_all(const void* input, void* output, size_t count, DataType type,
                                            const CallOptions& options) {
  return submit(call_of(Operation::all_to_all, input, output, whole(count, world()), type), options);
}

Result<void> Communicator::all_to_all_v(const void* input, std::span<const size_t> send_counts, void* output,
                                        std::span<const size_t> recv_counts, DataType type,
                                        const CallOptions& options) {
  return run(uneven(call_of(Operation::all_to_all, input, output, 0, type), send_counts, recv_counts),
             options);
}

Result<Work> Communicator::async_all_to_all_v(const void* input, std::span<const size_t> send_counts,
                                              void* output, std::span<const size_t> recv_counts,
                                              DataType type, const CallOptions& options) {
  return submit(uneven(call_of(Operation::all_to_all, input, output, 0, type), send_counts, recv_counts),
                options);
}

Result<void> Communicator::send(const void* data, size_t count, DataType type, Rank to,
                                const CallOptions& options) {
  return run(pairwise(data, count, to, nullptr, 0, schedule::nobody, type), options);
}

Result<Work> Communicator::async_send(const void* data, size_t count, DataType type, Rank to,
                                      const CallOptions& options) {
  return submit(pairwise(data, count, to, nullptr, 0, schedule::nobody, type), options);
}

Result<void> Communicator::recv(void* data, size_t count, DataType type, Rank from,
                                const CallOptions& options) {
  return run(pairwise(nullptr, 0, schedule::nobody, data, count, from, type), options);
}

Result<Work> Communicator::async_recv(void* data, size_t count, DataType type, Rank from,
                                      const CallOptions& options) {
  return submit(pairwise(nullptr, 0, schedule::nobody, data, count, from, type), options);
}

Result<void> Communicator::send_recv(const void* input, size_t send_count, Rank to, void* output,
                                     size_t recv_count, Rank from, DataType type,
                                     const CallOptions& options) {
  return run(pairwise(input, send_count, to, output, recv_count, from, type), options);
}

Result<Work> Communicator::async_send_recv(const void* input, size_t send_count, Rank to, void* output,
                                           size_t recv_count, Rank from, DataType type,
                                           const CallOptions& options) {
  return submit(pairwise(input, send_count, to, output, recv_count, from, type), options);
}

Result<void> Communicator::barrier(const CallOptions& options) {
  return run(call_of(Operation::barrier, nullptr, nullptr, 0, DataType::f32), options);
}

Result<Work> Communicator::async_barrier(const CallOptions& options) {
  return submit(call_of(Operation::barrier, nullptr, nullptr, 0, DataType::f32), options);
}

Result<void> Communicator::all_reduce_group(std::span<const Tensor> tensors, DataType type,
                                            Reduction reduction, const CallOptions& options) {
  return run(reducing(Operation::all_reduce, nullptr, nullptr, 0, type, reduction), options, tensors);
}

Result<Work> Communicator::async_all_reduce_group(std::span<const Tensor> tensors, DataType type,
                                                  Reduction reduction, const CallOptions& options) {
  return submit(reducing(Operation::all_reduce, nullptr, nullptr, 0, type, reduction), options, tensors);
}

}  // namespace rondo
