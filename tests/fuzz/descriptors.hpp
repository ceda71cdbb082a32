// Descriptors for the targets that receive some, and whether any of them was kept.
#pragma once
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/descriptor.hpp"
#include "input.hpp"

namespace rondo::fuzz {

/// Both ends of a datagram socket.
inline std::pair<Descriptor, Descriptor> datagram_pair() {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
          "a pair of sockets");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

inline std::pair<Descriptor, Descriptor> stream_pair() {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
          "a pair of sockets");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// The lowest number that is free: the same again once everything that was opened since has been closed. Within one
/// input only: the fuzzer opens files of its own.
inline int lowest_free() {
  const Descriptor probe(::fcntl(0, F_DUPFD_CLOEXEC, 0));
  return probe.get();
}

}  // namespace rondo::fuzz
