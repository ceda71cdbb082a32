#include "communicator/postman.hpp"

#include <asio/post.hpp>

namespace rondo {

Result<void> Postman::start(Descriptor mailbox) {
  asio::error_code refused;
  mailbox_.assign(mailbox.get(), refused);
  if (refused)
    return Error{ErrorCode::system, "cannot watch the mailbox of shared memory: " + refused.message()};
  mailbox.release();
  asio::post(mailbox_.get_executor(), [self = shared_from_this()] { self->wait(); });
  return {};
}

void Postman::stop() {
  asio::post(mailbox_.get_executor(), [self = shared_from_this()] {
    asio::error_code ignored;
    self->mailbox_.close(ignored);
    self->borrower_ = nullptr;
  });
}

void Postman::wait() {
  if (!mailbox_.is_open()) return;
  mailbox_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const asio::error_code& error) {
                        if (!error && self->mailbox_.is_open()) self->take();
                      });
}

// A flood of letters and the rest of the service take turns.
void Postman::take() {
  if (!borrower_->receive(mailbox_.native_handle())) return wait();
  asio::post(mailbox_.get_executor(), [self = shared_from_this()] {
    if (self->mailbox_.is_open()) self->take();
  });
}

}  // namespace rondo
