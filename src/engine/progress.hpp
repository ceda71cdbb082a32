// What one pass over an operation's links tells whoever drives it.
#pragma once
#include <cstdint>

namespace rondo::engine {

enum class Progress : uint8_t {
  moved,   // more may move at once
  idle,    // nothing moved; try again
  asleep,  // nothing will move before the waiter wakes or the operation's deadline comes
  ended,
};

}  // namespace rondo::engine
