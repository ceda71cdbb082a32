// Headers where the call under way does not read. What all ranks call has a number, so such a header tells whether a
// peer is ahead, or has made a call in another way than this rank; which would never read it.
//
//   this rank is in call #7        beside the links that it reads:   [#8]        the peer is ahead
//                                                                    [#7], [#5]  called something else
//
// So also those ranks learn of a disagreement that only send, or have ended the call in question.
#pragma once
#include <optional>
#include <vector>

#include "engine/execution.hpp"

namespace rondo::engine {

/// Driver thread only. The fabric outlives it.
class Strays {
 public:
  Strays(Rank rank, uint32_t world, Fabric& fabric) : rank_(rank), world_(world), fabric_(fabric) {}

  /// Looks at all links from now on that are there and that the program does not read. `more`: there may be more of
  /// them than when it was last told of this program.
  void beside(const Program& program, const Links& links, bool more);
  /// One of a call of all ranks with a number up to `last`.
  std::optional<Stray> find(uint64_t last) const;

 private:
  struct Place {
    Rank from;
    Rx* rx;
  };
  Rank rank_;
  uint32_t world_;
  Fabric& fabric_;
  const Program* program_ = nullptr;
  std::vector<Place> places_;
};

}  // namespace rondo::engine
