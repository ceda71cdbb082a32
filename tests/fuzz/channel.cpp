// The framing of control messages: whatever a peer sends, in whatever pieces, the same messages come out as a
// plain reading of the whole gives, then one reason why it is over.
#include "bootstrap/channel.hpp"

#include <asio/io_context.hpp>

#include "descriptors.hpp"

using namespace rondo;
using namespace rondo::bootstrap;
using fuzz::require;

namespace {

std::vector<Message> messages_in(std::span<const std::byte> stream) {
  std::vector<Message> messages;
  while (stream.size() >= head_bytes) {
    const auto head = decode_head(stream.first<head_bytes>());
    stream = stream.subspan(head_bytes);
    if (!head || head->body_bytes > longest_small_body || head->body_bytes > stream.size()) break;
    const auto body = stream.first(head->body_bytes);
    messages.push_back({head->kind, head->from, head->to, Bytes(body.begin(), body.end())});
    stream = stream.subspan(body.size());
  }
  return messages;
}

bool same(const Message& a, const Message& b) {
  return a.kind == b.kind && a.from == b.from && a.to == b.to && a.body == b.body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 32 << 10) return 0;  // what a socket takes at once
  fuzz::Input input(data, size);
  const size_t piece = 1 + input.value<uint8_t>();
  auto [mine, peer] = fuzz::stream_pair();
  asio::io_context context;
  const Address nowhere = local_address(mine.get());
  const auto channel =
      std::make_shared<Channel>(adopt(context, std::move(mine), nowhere), longest_small_body);
  std::vector<Message> received;
  int lost = 0;
  channel->start([&](Message message) { received.push_back(std::move(message)); },
                 [&](const std::string&) { ++lost; });
  const auto stream = input.rest();
  for (size_t at = 0; at < stream.size() && lost == 0; at += piece) {
    const auto part = stream.subspan(at, std::min(piece, stream.size() - at));
    if (::send(peer.get(), part.data(), part.size(), MSG_NOSIGNAL) < 0) break;
    context.restart();
    context.poll();
  }
  peer = Descriptor();
  context.restart();
  context.run();
  require(lost == 1, "the end is told once");
  const auto expected = messages_in(stream);
  require(std::ranges::equal(received, expected, same), "all that is whole arrives, and nothing else");
  return 0;
}
