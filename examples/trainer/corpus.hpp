// Which bytes are trained on, in which order, and which are held out.
//
//   block   0 1 2 3 4 5 6 7 8 [9] 10 11 ... 18 [19] 20 ...     4 KiB each; every tenth is held out
//           |---- run 0 -----|     |-- run 1 --|
//
// A training window (context + 1 bytes: inputs and what follows each) lies wholly inside a run, so that no
// byte of a held-out block is ever seen. Which window is used is a pure function of (seed, step, number of
// the sequence in the step): neither ranks nor micro-batches come into it.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "model.hpp"
#include "rondo/result.hpp"
#include "rondo/types.hpp"
#include "text.hpp"

namespace trainer {

class Corpus {
 public:
  static constexpr uint64_t block_bytes = 4096, held_out_every = 10;

  /// Error: shorter than ten blocks.
  static rondo::Result<Corpus> create(Text text, int context);

  const Text& text() const { return text_; }

  uint64_t training_windows() const { return training_windows_; }
  /// The first byte of training window 0 .. training_windows() - 1.
  uint64_t window(uint64_t number) const;
  /// Sequences `part` of step `step`, counted over the whole step.
  Batch training_batch(uint64_t seed, uint64_t step, const rondo::Extent& part) const;

  /// Held-out bytes are cut into windows that do not overlap; their targets are all of each held-out block
  /// but its first byte, which has nothing before it.
  uint64_t held_out_windows() const { return held_out_.size(); }
  Batch held_out_batch(const rondo::Extent& part) const;

 private:
  struct Run {
    uint64_t first_byte, first_window;
  };
  Corpus(Text text, int context) : text_(std::move(text)), context_(context) {}
  void add_run(uint64_t first, uint64_t end);
  void add_held_out(uint64_t first, uint64_t end);
  // Appends `targets` (up to context) inputs from `first` and what follows each.
  void append(Batch& batch, uint64_t first, uint64_t targets) const;

  Text text_;
  int context_;
  std::vector<Run> runs_;
  uint64_t training_windows_ = 0;
  std::vector<rondo::Extent> held_out_;
};

}  // namespace trainer
