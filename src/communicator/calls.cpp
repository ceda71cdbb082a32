// The public operations: their arguments become an engine::Call.
#include <fmt/format.h>

#include "engine/call.hpp"
#include "rondo/communicator.hpp"

namespace rondo {
namespace {

using engine::Call;
using schedule::Operation;

Call call_of(Operation operation, const void* input, void* output, size_t count, DataType type) {
  Call call{.operation = operation};
  call.type = type;
  call.count = count;
  call.input = static_cast<const std::byte*>(input);
  call.output = static_cast<std::byte*>(output);
  return call;
}

Call reducing(Operation operation, const void* input, void* output, size_t count, DataType type,
              Reduction reduction) {
  Call call = call_of(operation, input, output, count, type);
  call.reduction = reduction;
  return call;
}

Call rooted(Operation operation, void* data, size_t count, DataType type, Rank root) {
  Call call = call_of(operation, data, data, count, type);
  call.root = root;
  return call;
}

Call barrier_call() { return call_of(Operation::barrier, nullptr, nullptr, 0, DataType::f32); }

}  // namespace

Result<void> Communicator::same_size(const char* operation, size_t expected, size_t given) {
  if (expected == given) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("{}: the second buffer must have {} elements, not {}",
                                                        operation, expected, given)};
}

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

Result<void> Communicator::all_gather(const void* input, void* output, size_t count, DataType type,
                                      const CallOptions& options) {
  return run(call_of(Operation::all_gather, input, output, count, type), options);
}

Result<Work> Communicator::async_all_gather(const void* input, void* output, size_t count, DataType type,
                                            const CallOptions& options) {
  return submit(call_of(Operation::all_gather, input, output, count, type), options);
}

Result<void> Communicator::broadcast(void* data, size_t count, DataType type, Rank root,
                                     const CallOptions& options) {
  return run(rooted(Operation::broadcast, data, count, type, root), options);
}

Result<Work> Communicator::async_broadcast(void* data, size_t count, DataType type, Rank root,
                                           const CallOptions& options) {
  return submit(rooted(Operation::broadcast, data, count, type, root), options);
}

Result<void> Communicator::barrier(const CallOptions& options) { return run(barrier_call(), options); }

Result<Work> Communicator::async_barrier(const CallOptions& options) {
  return submit(barrier_call(), options);
}

}  // namespace rondo
