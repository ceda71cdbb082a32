// Where the ranks of a new job meet that know each other already, from a job they share. Its rank 0 listens
// before the others are told where, and the tag, which they must repeat in the handshake, tells this job from
// every other one that proves the same secret.
//
//   the job they share         the new job's root
//   unix:@name                 unix:@another name
//   loopback, or a file        a loopback port
//   host:port, led by rank 0   the same host, by which every rank has found it before
//   host:port, led by another  the address at which its peers find that rank
//
// Behind a network that translates addresses, the leader listens at its own address and the root is what the others
// see of it.
#pragma once
#include <asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/descriptor.hpp"
#include "rondo/result.hpp"

namespace rondo::bootstrap {

struct StarSetup;

struct Meeting {
  std::string root;                      // for Options::root
  uint64_t tag = 0;                      // 0: no meeting, but a root that was agreed beforehand
  std::shared_ptr<Descriptor> listener;  // rank 0's alone
  // Whether the job they share has failed, which ends the wait for those who will not come any more. Asked
  // only while joining.
  std::function<std::optional<Error>()> failure;
};

/// `old` is the job they share, `own` the address at which this rank itself listens there (rank 0: any).
Result<Meeting> open_meeting(const StarSetup& old, const asio::ip::address& own);

}  // namespace rondo::bootstrap
