// What a schedule asks for, counted from its steps: the situation-free half of the cost model that selects
// algorithms (engine/model.hpp is the other half). Times need a walk through all steps (cost.hpp); this needs
// none, so that a communicator can look at every algorithm it could run when it first needs to.
#pragma once
#include "schedule/fuse.hpp"

namespace rondo::schedule {

/// Of one rank. Bytes are in vectors: 1 is the whole vector in its own type.
struct Work {
  double messages = 0;  // sent: one for each chunk, and one for each link, which begins with a header
  double bytes = 0;     // moved: half when put into a link, half when taken out
  double reduced = 0;   // read by a reduction besides what is already there
  double cold = 0;      // sent from memory, not passed on as it comes
  double stored = 0;    // partials that go through the accumulator, and copies

  friend bool operator==(const Work&, const Work&) = default;
};

struct Profile {
  uint32_t inner_rounds = 0;  // one after another, in which nobody sends to another node
  uint32_t outer_rounds = 0;  // the others
  Work busiest;               // the most that any rank has of each
  Work mean;                  // over the ranks
  double outgoing = 0;        // bytes that the busiest node sends to others, in vectors

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// `width`: of a partial, in elements. Published sends are one message, put once and taken by all others.
/// Everything here is counted in worlds of up to 64 ranks. In larger ones some ranks, evenly spread, stand for
/// all, so that about a million steps are looked at.
Profile profile_of(const Schedule& schedule, const Shape& shape, double width, Publications publications);

}  // namespace rondo::schedule
