// Where C ends and C++ begins: the handles, and the way of every call across.
//
//   C caller -> arguments checked for what C++ types rule out -> Communicator -> Result
//            <- rondo_status, the rest kept for rondo_last_error  <- or an exception
#pragma once
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rondo/rondo.h"
#include "rondo/rondo.hpp"

struct rondo_comm {
  rondo::Communicator communicator;
};

// Made before its operation is submitted, so that one under way never lacks a handle.
struct rondo_work {
  std::optional<rondo::Work> work;
};

namespace rondo::c_api {

/// What a call was given beside the communicator and its buffers.
struct Terms {
  DataType type;
  Reduction reduction;
  CallOptions options;
};

Error invalid(const char* function, const std::string& what);
/// Yes, no, or -1 for what is left open.
Result<std::optional<bool>> flag(const char* function, const char* name, int32_t given);
/// Keeps the error for rondo_last_error of this thread.
rondo_status remember(const Error& error) noexcept;
/// The same where memory may be short: `text` lives for ever.
rondo_status remember_system(const char* text) noexcept;

Result<CallOptions> call_options(const char* function, const rondo_call_options* given);
Result<Terms> terms(const char* function, rondo_type type, rondo_reduction reduction,
                    const rondo_call_options* options);
/// One number for each rank of the communicator.
Result<std::span<const size_t>> counts_of(const char* function, const char* name, const size_t* counts,
                                          const Communicator& communicator);
Result<std::vector<Tensor>> tensors_of(const char* function, const rondo_tensor* tensors, size_t count);

/// Runs `function`, which returns a Result<void>, and makes a status of whatever comes of it.
template <class Function>
rondo_status guarded(Function&& function) noexcept {
  try {
    const Result<void> outcome = function();
    return outcome ? RONDO_OK : remember(outcome.error());
  } catch (const std::bad_alloc&) {
    return remember_system("out of memory");
  } catch (const std::exception& error) {
    try {
      return remember({ErrorCode::system, error.what()});
    } catch (...) {
    }
  } catch (...) {
  }
  return remember_system("an unknown exception");
}

/// One operation that blocks: `operation(communicator, terms)` returns a Result<void>.
template <class Operation>
rondo_status block(const char* function, rondo_comm* comm, rondo_type type, rondo_reduction reduction,
                   const rondo_call_options* options, Operation&& operation) noexcept {
  return guarded([&]() -> Result<void> {
    if (comm == nullptr) return invalid(function, "the communicator is NULL");
    const auto checked = terms(function, type, reduction, options);
    if (!checked) return checked.error();
    return operation(comm->communicator, *checked);
  });
}

/// One that does not: `operation(communicator, terms)` returns a Result<Work>.
template <class Operation>
rondo_status submit(const char* function, rondo_comm* comm, rondo_type type, rondo_reduction reduction,
                    const rondo_call_options* options, rondo_work** work, Operation&& operation) noexcept {
  if (work != nullptr) *work = nullptr;
  return block(function, comm, type, reduction, options,
               [&](Communicator& communicator, const Terms& checked) -> Result<void> {
                 if (work == nullptr) return invalid(function, "the pointer to the work is NULL");
                 auto handle = std::make_unique<rondo_work>();
                 auto submitted = operation(communicator, checked);
                 if (!submitted) return submitted.error();
                 handle->work.emplace(std::move(*submitted));
                 *work = handle.release();
                 return {};
               });
}

}  // namespace rondo::c_api
