// The limits of this process or machine that a failed system call has met.
#pragma once
#include <string>

namespace rondo {

/// What keeps a process from having one more descriptor, after EMFILE or ENFILE.
std::string descriptor_limit(int error);

/// The limit behind an error, and what to do: "; ulimit -n is 20, ...", to be put after the error's own text. Empty where
/// the error is not of a limit of descriptors, of the size of files, or of processes and threads.
std::string limit_behind(int error);

}  // namespace rondo
