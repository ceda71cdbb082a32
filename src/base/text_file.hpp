// Reading short text files whole.
#pragma once
#include <cstddef>
#include <string>

#include "rondo/result.hpp"

namespace rondo {

/// Errors: invalid_argument, which says what is wrong but not with which file: it cannot be read, or is longer
/// than `longest` bytes. A pipe is waited for, 3 s in all.
Result<std::string> read_text(const std::string& path, size_t longest);

}  // namespace rondo
