// Which algorithm a call runs: a pure function of values that all ranks share, so that no rank chooses
// differently. The model (model.hpp) says what is quickest; of equals, and in one memory of near equals, the
// algorithms that reduce at once come first.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "engine/call.hpp"
#include "engine/model.hpp"

namespace rondo::engine {

/// Whether the operation has the algorithm, and it does what the call demands: the canonical order where sums
/// shall be reproducible and an order can be seen in them, and in one go where they are weighted, so that every contribution meets its
/// rank's weight.
bool can_run(const Call& call, schedule::Algorithm algorithm) noexcept;

/// A table over (operation, width of partials, what the call demands, size), filled row by row when one is
/// first needed; after that a choice is a look-up. Sizes are those of the whole vector, in classes up to the
/// next power of two. One thread.
class Selection {
 public:
  explicit Selection(const Situation& situation)
      : Selection(situation, situation.publishes ? shm_costs : tcp_costs) {}
  Selection(const Situation& situation, const Costs& costs);

  schedule::Algorithm choose(const Call& call);

  struct Candidate {
    schedule::Algorithm algorithm;
    double ns;  // as the model has it, at the largest size of the class
  };
  /// What could run the call: the chosen one, then the others, the quickest first.
  std::vector<Candidate> candidates(const Call& call) const;

  static constexpr unsigned classes = 43;  // up to 1, 2, 4, .. bytes; the last for all that is larger
  static unsigned class_of(uint64_t bytes) noexcept;

 private:
  using Row = std::array<schedule::Algorithm, classes>;
  struct Profiled {
    schedule::Algorithm algorithm;
    schedule::Profile profile;
  };
  std::vector<Profiled> profiles(const Call& call) const;
  std::vector<Candidate> ranked(const std::vector<Profiled>& profiles, unsigned size) const;

  uint32_t world_;
  bool publishes_;
  uint32_t cores_;
  std::vector<uint32_t> nodes_;  // empty: all ranks are on one
  Costs costs_;
  static constexpr size_t operations = 10, widths = 4, demands = 3;
  std::array<std::unique_ptr<Row>, operations * widths * demands> rows_;
};

}  // namespace rondo::engine
