// Runs one call: every link has a cursor into its queue of ops, and a pass moves each cursor as far as data
// and credit allow. The vector is worked off in windows of segments:
//
//   chunk c   |--window 0--|--window 1--|--window 2-|
//
// An op handles its chunk's part of window w, then the next op of the link does, then window w+1 begins.
//
// An op's watermark (bytes taken in so far, over all windows) is all that a later op needs to know of it, so
// a send follows its producer segment by segment. A partial goes straight from the reduction into the
// outgoing link's memory (recv_reduce_send), which needs that link's cursor to stand at the same op; with a
// window of W segments and W+1 slots that never deadlocks (src/schedule/verify proves it).
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "engine/call.hpp"
#include "engine/program.hpp"
#include "kernels/reducer.hpp"
#include "rondo/communicator.hpp"
#include "transport/link.hpp"

namespace rondo::engine {

/// A peer's links and how many bytes of its Tx stream have been accepted since it was opened.
struct PeerLinks {
  Tx* tx = nullptr;
  Rx* rx = nullptr;
  uint64_t accepted = 0;
};

/// All links of a communicator, by peer. A publication's Tx stands at this rank itself.
struct Links {
  explicit Links(uint32_t world) : pairs(world), publications(world) {}
  PeerLinks& of(const LinkQueue& queue) { return (queue.published ? publications : pairs)[queue.peer]; }
  const PeerLinks& of(const LinkQueue& queue) const {
    return (queue.published ? publications : pairs)[queue.peer];
  }

  std::vector<PeerLinks> pairs, publications;
};

/// Of a peer: what it calls, or has called.
struct Stray {
  Rank from;
  Header header;
};

/// Driver thread only. Made once per communicator; memory is kept between calls.
class Execution {
 public:
  Execution(Rank rank, uint32_t world, Counters& counters)
      : rank_(rank), world_(world), counters_(counters), sources_(world), weights_(world) {}

  /// `links` holds open ones for everything in the program; `window` is in elements per chunk.
  /// `headers`: one for all links, or one for each of the program's.
  void start(const Program& program, const Call& call, std::span<const Header> headers, uint64_t window,
             Links& links);
  /// The last call once more, with other buffers.
  void start_again(const Call& call, std::span<const Header> headers);
  /// Moves what can be moved; true if anything did. Nothing left to move may mean that a receive needs an
  /// outgoing link which still holds bytes of the caller's memory that the peer does not read, because it is
  /// in the same place. Then, and only then, those bytes are copied into the link's own blocks, of which
  /// there are enough for a window.
  bool pass() { return move() || unblock(); }
  bool done() const noexcept;
  /// Why it cannot go on: a mismatch or a closed link. Meaningful after a pass that moved nothing.
  std::optional<Error> failure() const;
  /// A mismatch of another kind: a header of an earlier call, on a link that this one reads.
  const std::optional<Stray>& stale() const noexcept { return stale_; }
  /// Which peers this rank waits for, for a time-out's message, and the most suspect of them.
  std::string waiting_for() const;
  std::optional<Rank> first_awaited() const;
  /// Whether anything of this call has come from the peer.
  bool has_called(Rank peer) const;

 private:
  struct OpRun {
    uint64_t source_at, target_at;  // in their buffers, in bytes
    const std::byte* source;
    std::byte* target;
    uint64_t count;
    uint32_t in_width, out_width, source_width, target_width;
    uint64_t in_bytes = 0, out_bytes = 0;  // taken in and sent so far
    uint64_t windows = 0;                  // windows whose in-side is complete
    uint64_t elements() const noexcept { return in_bytes / in_width; }
  };
  struct LinkRun {
    PeerLinks* peer;
    Header header{};  // to send, or as it must come but for the weight, which is then the sender's
    uint64_t window = 0;
    size_t next = 0;
    uint32_t header_bytes = 0;
    bool done = false;
    bool awaited = false;  // a receive wants to produce into this link, which is not there yet

    // Member by member: an object made to be copied is read again before its writes have settled (store forwarding).
    void rewind(const Header& first) noexcept {
      header = first;
      window = next = 0;
      header_bytes = 0;
      done = awaited = false;
    }
  };

  void place(const Op& op);
  Extent extent(schedule::Buffer buffer, uint32_t chunk) const noexcept;
  uint64_t offset(schedule::Buffer buffer, uint32_t chunk, uint32_t width) const noexcept;
  uint64_t limit(uint64_t count, uint64_t window) const noexcept;
  bool is_empty(const OpRun& run, uint64_t window) const noexcept;
  uint64_t ready(uint32_t producer, uint64_t limit) const noexcept;
  bool is_pending(size_t link) const noexcept;
  bool needs_peer(size_t link) const noexcept;
  bool has_passed(uint32_t producer, uint64_t window) const noexcept;
  void next(LinkRun& link, const std::vector<uint32_t>& queue) noexcept;

  bool move();
  bool move_sends();
  bool unblock();
  bool advance_tx(uint32_t link);
  bool advance_rx(uint32_t link);
  bool advance_local();
  bool put_header(LinkRun& link);
  bool take_header(uint32_t link);
  bool take_weight(LinkRun& link);
  bool weighted() const noexcept { return header_bytes_ == weighted_header_bytes; }
  size_t send(LinkRun& link, View view);
  size_t take_in(const Op& op, OpRun& run, Rx& rx, uint64_t until);
  size_t take_through(const Op& op, OpRun& run, Rx& rx, uint64_t until);
  bool fan_stands(const Op& op, uint32_t index, uint64_t window);
  size_t take_fan(const Op& op, OpRun& run, uint64_t until);
  void finish_weighted(const uint32_t* fan, std::byte* target, uint64_t elements);
  void finish_alone(std::byte* target, const std::byte* source, uint64_t elements);
  void leave(const Op& op, uint32_t link) noexcept;
  void combine(const Op& op, const OpRun& run, std::byte* target, const std::byte* incoming,
               uint64_t elements) const;
  bool stands_at(uint32_t link, uint32_t op, uint64_t window) const noexcept;

  Rank rank_;
  uint32_t world_;
  Counters& counters_;

  const Program* program_ = nullptr;
  Call call_{};
  size_t header_bytes_ = 0;  // with the weight where there is one
  Traffic traffic_ = Traffic::both_ways;
  uint64_t window_ = 1, windows_ = 1;
  const kernels::Reducer* reducer_ = nullptr;
  std::vector<OpRun> ops_;
  std::vector<LinkRun> links_;
  LinkRun local_{};
  std::vector<std::byte> accumulator_;
  std::vector<const std::byte*> sources_;  // of a fan, by rank
  std::vector<double> weights_;            // theirs
  std::optional<Error> mismatch_;
  std::optional<Stray> stale_;
};

}  // namespace rondo::engine
