// Runs a program without data, to see whether it can always go on.
#pragma once
#include <functional>

#include "schedule/program.hpp"

namespace rondo::schedule {

inline constexpr uint32_t unbounded = UINT32_MAX;

enum class Posting : uint8_t {
  concurrent,  // a task waits only for its data, its buffers and its turn on its links
  serial,      // a rank carries out its tasks strictly one after another
};

struct Setting {
  uint32_t slots;   // segments that a link holds, unreleased ones included; 0: both ends must meet
  uint32_t window;  // segments of a chunk that are sent before the next chunk's turn
  std::vector<uint32_t> segments;  // of each chunk, in all windows together
  Posting posting = Posting::concurrent;
};

/// Called for every segment that a task has dealt with, the sender of a message before its receiver.
using OnFire = std::function<void(Rank, uint32_t task)>;

/// Goes on until nothing can. Returns why it got stuck, or nothing when all is done.
///
/// A link carries the segments of its tasks in order: those of window 0, task by task, then those of
/// window 1. A message occupies a slot from when it is sent until its receiver has dealt with it; a joined
/// action takes a message only when it also has a slot to produce into. Tasks are deterministic and every
/// link has one writer and one reader, so what can go on at one moment can still go on later: the order in
/// which tasks are tried does not change whether the program gets stuck (Kahn, "The semantics of a simple
/// language for parallel programming", 1974).
std::optional<Fault> run(const Program& program, const Setting& setting, const OnFire& on_fire = {});

}  // namespace rondo::schedule
