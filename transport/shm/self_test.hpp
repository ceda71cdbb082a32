// Proof that two ranks see each other's memory as it changes, before a byte of data is trusted to it: a
// pattern through slot 0 of both links, and its release back. The two ranks take the steps in turn, and tell
// each other over another path when one is done:
//
//   say   write the pattern into the own area        hear   read and check the peer's, release it
//   done  the peer's area shows that it has released this rank's
//
// Where private memory is worth pulling (pull.hpp), whoever hears tries that too and says in its area if it can.
#pragma once
#include "transport/shm/link.hpp"

namespace rondo::shm {

/// Tries to read the peer's private memory, and says in `mine` if that went well; else copies do.
void try_to_pull(const Area& mine, const Area& theirs) noexcept;

class SelfTest {
 public:
  /// Of this rank's area and a peer's, neither used before between the two.
  SelfTest(const Area& mine, const Area& theirs);
  /// Errors of all: system, naming the peer; a later step must not follow.
  Result<void> say() noexcept;
  Result<void> hear() noexcept;
  Result<void> done() const noexcept;

  /// Slots of either link that lie behind it afterwards.
  static constexpr uint64_t used = 1;

 private:
  Error broken(const char* what) const;

  const Area &mine_, &theirs_;
  ShmTx tx_;
  ShmRx rx_;
};

}  // namespace rondo::shm
