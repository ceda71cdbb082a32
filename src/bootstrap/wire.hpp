// What goes over a connection before and after it is proven, as bytes. Pure: no sockets, no clock, no
// secrets.
//
//   before:  Hello ->  <- Hello   Proof ->  <- Answer        fixed sizes, see handshake.hpp
//   after, on the control connections:  frames of a 16-byte head and a body
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/bytes.hpp"
#include "rondo/result.hpp"

namespace rondo::bootstrap {

// ---- Handshake. The first 11 bytes of a Hello (magic, version, byte order) stay what they are in every
// version.

inline constexpr uint16_t protocol_version = 8;
enum class ByteOrder : uint8_t { little = 1, big = 2 };
ByteOrder native_order() noexcept;
enum class Purpose : uint8_t { control = 1, data = 2, memory = 3 };

using Nonce = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;

struct Hello {
  uint16_t version = protocol_version;
  ByteOrder order = native_order();
  Purpose purpose = Purpose::control;
  bool has_secret = false, tls = false;  // tls: over TCP, what follows the Answer is TLS
  std::string build;                     // at most 16 characters
  Nonce nonce{};
  friend bool operator==(const Hello&, const Hello&) = default;
};
inline constexpr size_t hello_bytes = 64;
Bytes encode(const Hello&);
/// Nothing: not Rondo's magic. A Hello of another version is decoded as far as its fixed part goes.
std::optional<Hello> decode_hello(std::span<const std::byte, hello_bytes>);

/// What the dialler is here for; its Proof covers it.
struct Claim {
  uint64_t tag = 0;  // data and memory: the job's epoch; control: the nonce of a root file, else 0
  Rank rank = 0;
  uint16_t lane = 0;
  friend bool operator==(const Claim&, const Claim&) = default;
};
inline constexpr size_t claim_bytes = 16, proof_bytes = claim_bytes + 32;
struct Proof {
  Claim claim;
  Mac mac{};
};
Bytes encode(const Claim&);
Bytes encode(const Proof&);
std::optional<Proof> decode_proof(std::span<const std::byte, proof_bytes>);

enum class Verdict : uint8_t {
  welcome = 1,
  wrong_secret = 2,
  unknown_tag = 3,  // proven, but of another job or another run
};
inline constexpr size_t answer_bytes = 40;
struct Answer {
  Verdict verdict = Verdict::welcome;
  Mac mac{};  // zero when refused: a stranger learns nothing
};
Bytes encode(const Answer&);
std::optional<Answer> decode_answer(std::span<const std::byte, answer_bytes>);

// ---- Control messages.

using BootId = std::array<std::byte, 16>;
/// Of an abstract Unix socket; zeros: none.
using DoorName = std::array<std::byte, 16>;

/// Where a rank's data listener is; family 0: it has none.
struct DataAddress {
  uint8_t family = 0;  // 4 or 6
  uint16_t port = 0;
  std::array<std::byte, 16> ip{};
  friend bool operator==(const DataAddress&, const DataAddress&) = default;
};

/// Of one machine; a pid alone is used again, and means another process in another PID namespace.
struct Process {
  uint64_t pid_namespace = 0, pid = 0, start = 0;  // start: in clock ticks since boot; 0: not known
  friend bool operator==(const Process&, const Process&) = default;
};

/// The node is the machine.
inline constexpr uint32_t own_node = 0xffffffff;
/// Who a process is, for messages and for counting the ranks of a machine.
struct Person {
  Process process{};
  std::string host;
  BootId boot{};
  DoorName door{};  // where it exchanges shared memory with the ranks of its machine
  uint32_t node =
      own_node;  // Options::node: ranks with different ones are taken for ranks of different machines
  friend bool operator==(const Person&, const Person&) = default;
};

inline constexpr Rank everyone = 0xffffffff;
inline constexpr size_t head_bytes = 16, longest_text = 2048, longest_host = 64, longest_algorithm = 32,
                        longest_table = 32u << 10;
inline constexpr size_t longest_small_body = 4096, longest_welcome_body = 16u << 20;

enum class Kind : uint8_t {
  join = 1,      // rank -> root: Join
  welcome = 2,   // root -> rank: Welcome
  failed = 3,    // any -> everyone: Failure
  leave = 4,     // any -> everyone: in order, no failure
  dial = 5,      // higher rank -> lower rank: u16 lane
  shared = 6,    // rank -> root: Shared
  groups = 7,    // root -> everyone: Groups
  report = 8,    // rank -> root: Report
  ask = 9,       // root -> rank: CallKey
  summary = 10,  // root -> rank: Summary
  beat = 11,     // between rank and root: still here
  ended = 12,    // rank -> root: u32 rank, whose process has
  regroup = 13,  // between ranks that regroup: RegroupNote
};
struct Head {
  Kind kind = Kind::leave;
  Rank from = 0, to = 0;
  uint32_t body_bytes = 0;
};
struct Message {
  Kind kind = Kind::leave;
  Rank from = 0, to = everyone;
  Bytes body;
};

struct Join {
  uint32_t world = 0;
  uint32_t timeout_ms = 0, remaining_ms = 0;
  Person person;
  DataAddress listener;
  friend bool operator==(const Join&, const Join&) = default;
};
/// What carries the data: RONDO_TRANSPORT of rank 0.
enum class Transport : uint8_t { automatic = 1, tcp = 2, shm = 3 };
/// How algorithms are chosen. Rank 0's counts.
struct Policy {
  std::string algorithm = "auto";  // Options::algorithm, at most 32 characters
  bool reproducible = false;       // Options::reproducible
  std::string table;               // what the file Options::tuning says, at most longest_table
  uint32_t cores = 1;              // that a rank may use, at least 1; the ranks of its machine share them
  friend bool operator==(const Policy&, const Policy&) = default;
};
struct Welcome {
  uint64_t epoch = 0;
  Transport transport = Transport::automatic;
  Policy policy;
  uint32_t remaining_ms = 0;           // until all must have agreed on the transport
  uint32_t heartbeat_ms = 0;           // Options::heartbeat of rank 0
  std::vector<Person> persons;         // by rank
  std::vector<DataAddress> listeners;  // by rank
  friend bool operator==(const Welcome&, const Welcome&) = default;
};
/// How the exchange of memory with all ranks of the machine went for one of them.
struct Shared {
  bool ok = true;
  bool consequence = false;  // of something that another rank saw go wrong, and knows more about
  Rank peer = 0;             // with whom it failed
  std::string why;
  friend bool operator==(const Shared&, const Shared&) = default;
};
/// Ranks of one group see each other's memory.
struct Groups {
  std::vector<uint32_t> group;  // by rank
  Rank peer = 0;                // because of whom there is not one group only
  std::string why;
  friend bool operator==(const Groups&, const Groups&) = default;
};
/// Between two ranks of a failed job (regroup.hpp).
struct RegroupNote {
  enum class Word : uint8_t { idle = 1, waits = 2, gone_on = 3, plan = 4, joined = 5 } word = Word::idle;
  Rank leader = 0;          // waits: for whom it does what it is told
  uint64_t number = 0;      // gone_on, joined: the epoch; plan: the meeting's tag
  std::vector<Rank> ranks;  // plan: the members; waits: some that it misses
  std::string root;         // plan: the meeting's
  bool silent = false;      // plan: leaves out ranks that may live
  friend bool operator==(const RegroupNote&, const RegroupNote&) = default;
};
struct Failure {
  ErrorCode code = ErrorCode::aborted;
  std::optional<Rank> peer;
  std::string text;
  bool complete = false;  // the text says who found it, or it does not matter
  friend bool operator==(const Failure&, const Failure&) = default;
};

Bytes encode(const Message&);
std::optional<Head> decode_head(std::span<const std::byte, head_bytes>);
Bytes encode(const Join&);
std::optional<Join> decode_join(std::span<const std::byte>);
Bytes encode(const Welcome&);
std::optional<Welcome> decode_welcome(std::span<const std::byte>);
Bytes encode(const Shared&);
std::optional<Shared> decode_shared(std::span<const std::byte>);
Bytes encode(const Groups&);
std::optional<Groups> decode_groups(std::span<const std::byte>);
Bytes encode(const RegroupNote&);
std::optional<RegroupNote> decode_regroup(std::span<const std::byte>);
Bytes encode(const Failure&);
std::optional<Failure> decode_failure(std::span<const std::byte>);
Bytes encode_lane(uint16_t lane);
std::optional<uint16_t> decode_lane(std::span<const std::byte>);
Bytes encode_rank(Rank rank);
std::optional<Rank> decode_rank(std::span<const std::byte>);

}  // namespace rondo::bootstrap
