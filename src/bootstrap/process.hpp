// Which process, for sure: a pid alone is used again, and in another PID namespace means another process.
#pragma once
#include "base/descriptor.hpp"
#include "bootstrap/wire.hpp"

namespace rondo::bootstrap {

Process this_one();
/// It has not ended. In another PID namespace nothing can be said: assume that it lives.
bool lives(const Process& other);
/// Readable when it has ended. None where the two do not share a PID namespace, where /proc does not prove that
/// it is this process, and where the kernel refuses.
Descriptor open_process(const Process& other) noexcept;

}  // namespace rondo::bootstrap
