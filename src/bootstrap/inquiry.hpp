// One question to all ranks, "what have you called as this?", and what follows from their accounts. Pure.
//
//   accounts differ in a field     the ranks disagree: the minority is named, or every side of a tie
//   some have not called it        whoever is late learns who has not arrived, and what they did last
//   all have, alike                they are slow
#pragma once
#include "bootstrap/report.hpp"

namespace rondo::bootstrap {

class Inquiry {
 public:
  Inquiry(const CallKey& key, uint32_t world);

  void add(Rank rank, Account account);
  /// It left, or was lost: nothing will come from it.
  void gone(Rank rank) { ranks_[rank].gone = true; }
  /// Nobody is left who might still answer.
  bool complete() const;

  struct Disagreement {
    std::string text;
    std::vector<std::vector<Rank>> sides;  // the largest first; among equals the one with the lowest rank
    /// Whom this rank should blame: the first odd one, which may be itself; in a tie one of another side.
    Rank blamed_by(Rank rank) const;
  };
  std::optional<Disagreement> disagreement() const;
  /// Ranks that have answered and not called it yet; they may still say more about who is the odd one.
  std::vector<Rank> behind() const;
  /// `silence_ms`: by rank, for how long nothing has been heard from it.
  Summary summary(const std::vector<uint64_t>& silence_ms) const;

 private:
  struct State {
    std::optional<Account> account;
    bool gone = false;
  };
  bool takes_part(Rank rank) const;
  std::string name() const;

  const CallKey key_;
  std::vector<State> ranks_;
};

}  // namespace rondo::bootstrap
