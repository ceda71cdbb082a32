// What a Work holds.
#pragma once
#include <memory>

#include "communicator/operations.hpp"

namespace rondo {

/// The operation, and the FIFO that outlives its communicator for as long as somebody may wait.
struct PendingOperation {
  Operation operation;
  std::shared_ptr<Operations> operations;
};

}  // namespace rondo
