// Messages with descriptors, of which any process may send any number to a mailbox.
#include "base/passing.hpp"

#include "descriptors.hpp"

using namespace rondo;
using fuzz::require;

namespace {

// Up to four control messages with up to 16 descriptors each.
void send(int socket, fuzz::Input& input) {
  alignas(cmsghdr) char control[4 * CMSG_SPACE(16 * sizeof(int))] = {};
  size_t used = 0;
  const unsigned groups = input.value<uint8_t>() % 5;
  for (unsigned i = 0; i < groups; ++i) {
    const unsigned count = input.value<uint8_t>() % 17;
    auto* header = reinterpret_cast<cmsghdr*>(control + used);
    *header = {CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::fill_n(reinterpret_cast<int*>(CMSG_DATA(header)), count, socket);
    used += CMSG_SPACE(count * sizeof(int));
  }
  const auto body = input.take(64);
  iovec part{const_cast<std::byte*>(body.data()), body.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = used > 0 ? control : nullptr;
  message.msg_controllen = used;
  ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto ends = fuzz::datagram_pair();
  const int free_before = fuzz::lowest_free();
  fuzz::Input input(data, size);
  std::byte into[32];
  const size_t room = input.value<uint8_t>() % (sizeof into + 1);
  send(ends.first.get(), input);
  {
    const Received received = receive_message(ends.second.get(), std::span(into).first(room));
    require(received.bytes <= ssize_t(room), "no more than there is room for");
  }
  require(receive_message(ends.second.get(), into).bytes < 0, "a message is taken whole");
  require(fuzz::lowest_free() == free_before, "every descriptor that came is closed");
  return 0;
}
