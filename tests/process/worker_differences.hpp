// Calls in which one rank, the odd one, differs from the others: what the worker does in `mismatch`.
#pragma once
#include <functional>
#include <vector>

#include "rondo/rondo.hpp"

/// Of the vector that a call is given.
inline constexpr size_t difference_elements = 1000;

struct Difference {
  const char* field;
  std::function<rondo::Result<void>(rondo::Communicator&, bool odd, std::vector<float>&)> call;
};

const std::vector<Difference>& differences();
