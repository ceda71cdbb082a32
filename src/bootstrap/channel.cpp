#include "bootstrap/channel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <asio/post.hpp>
#include <cstring>

namespace rondo::bootstrap {
namespace {

// A peer that does not read (it may be stopped) must not make this process hold more than this for it.
constexpr size_t most_queued = longest_welcome_body + (1u << 20);

}  // namespace

void Channel::start(std::function<void(Message)> received, std::function<void(const std::string&)> lost) {
  received_ = std::move(received);
  lost_ = std::move(lost);
  read_head();
}

// From a handler each time: nobody is called from within start, and a talkative peer leaves the others their turn.
void Channel::read_head() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->received_) self->read(self->head_, &Channel::read_body);
  });
}

void Channel::read_body() {
  const auto head = decode_head(head_);
  if (!head || head->body_bytes > longest_body_) return fail("sent a malformed message");
  incoming_ = {head->kind, head->from, head->to, Bytes(head->body_bytes)};
  read(incoming_.body, &Channel::deliver);
}

void Channel::deliver() {
  const auto received = received_;  // a copy: it may finish this channel
  received(std::move(incoming_));
  if (received_) read_head();
}

void Channel::read(std::span<std::byte> into, void (Channel::*then)()) {
  missing_ = into;
  then_ = then;
  read_on();
}

void Channel::read_on() {
  while (!missing_.empty()) {
    const Moved moved = read_some(socket_, missing_);
    if (moved.error == tls::altered_bytes) return fail("sent bytes that were altered on their way");
    if (moved.error != 0 || moved.ended) {
      const bool between = then_ == &Channel::read_body && missing_.size() == head_.size();
      if (!between) return fail("closed its connection in the middle of a message");
      if (moved.ended) return fail("closed its connection");
      return fail(fmt::format("lost its connection ({})", std::strerror(moved.error)));
    }
    missing_ = missing_.subspan(moved.bytes);
    if (moved.bytes > 0) continue;
    return socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const asio::error_code& error) {
      if (!error && self->received_) self->read_on();
    });
  }
  (this->*then_)();
}

void Channel::send(const Message& message) {
  if (!received_) return;
  outgoing_.push_back(encode(message));
  queued_ += outgoing_.back().size();
  if (queued_ > most_queued) return fail("does not read its messages");
  if (!waiting_) write();
}

// An error here is left to the reader, who finds it after it has read what the peer still said.
bool Channel::flush() noexcept {
  const auto unsent = [this] { return socket_.tls && socket_.tls->unsent(); };
  while (!outgoing_.empty() || unsent()) {
    const auto rest = outgoing_.empty() ? std::span<const std::byte>()
                                        : std::span<const std::byte>(outgoing_.front()).subspan(written_);
    const Moved moved = write_some(socket_, rest);
    if (moved.error != 0) {
      outgoing_.clear();
      written_ = queued_ = 0;
      return true;
    }
    if (moved.bytes == 0 && (!rest.empty() || unsent())) return false;
    written_ += moved.bytes;
    if (outgoing_.empty() || written_ < outgoing_.front().size()) continue;
    queued_ -= written_;
    written_ = 0;
    outgoing_.pop_front();
  }
  return true;
}

void Channel::write() {
  if (flush()) return;
  waiting_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const asio::error_code& error) {
    self->waiting_ = false;
    if (!error && self->received_) self->write();
  });
}

// Closing a socket with unread bytes makes the kernel send a reset, which may overtake what was just sent.
void Channel::finish() noexcept {
  received_ = nullptr;
  lost_ = nullptr;
  if (!socket_.is_open()) return;
  flush();
  ::shutdown(socket_.native_handle(), SHUT_WR);
  std::array<std::byte, 4096> scrap;
  for (int i = 0; i < 64 && ::recv(socket_.native_handle(), scrap.data(), scrap.size(), MSG_DONTWAIT) > 0;
       ++i) {
  }
  asio::error_code ignored;
  socket_.close(ignored);
}

void Channel::fail(const std::string& why) {
  const auto lost = std::move(lost_);
  received_ = nullptr;
  lost_ = nullptr;
  asio::error_code ignored;
  socket_.close(ignored);
  if (lost) lost(why);
}

}  // namespace rondo::bootstrap
