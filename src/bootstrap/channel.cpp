#include "bootstrap/channel.hpp"

#include <sys/socket.h>

#include <asio/read.hpp>
#include <cerrno>

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

void Channel::read_head() {
  asio::async_read(
      socket_, asio::buffer(head_), [self = shared_from_this()](const asio::error_code& error, size_t) {
        if (!self->received_) return;
        if (error) return self->fail(error == asio::error::eof ? "closed its connection" : error.message());
        const auto head = decode_head(self->head_);
        if (!head || head->body_bytes > self->longest_body_) return self->fail("sent a malformed message");
        self->read_body(*head);
      });
}

void Channel::read_body(const Head& head) {
  incoming_ = {head.kind, head.from, head.to, Bytes(head.body_bytes)};
  asio::async_read(socket_, asio::buffer(incoming_.body),
                   [self = shared_from_this()](const asio::error_code& error, size_t) {
                     if (!self->received_) return;
                     if (error) return self->fail("closed its connection in the middle of a message");
                     const auto received = self->received_;  // a copy: it may finish this channel
                     received(std::move(self->incoming_));
                     if (self->received_) self->read_head();
                   });
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
  while (!outgoing_.empty()) {
    const auto rest = std::span<const std::byte>(outgoing_.front()).subspan(written_);
    const ssize_t sent =
        ::send(socket_.native_handle(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0) {
      outgoing_.clear();
      written_ = queued_ = 0;
      return true;
    }
    written_ += size_t(sent);
    if (written_ < outgoing_.front().size()) continue;
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
