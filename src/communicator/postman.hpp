// Has the service thread read the letters that lend this rank memory (transport/shm/lending.hpp) as they come,
// whatever the communicator does.
#pragma once
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <memory>

#include "base/descriptor.hpp"
#include "transport/shm/lending.hpp"

namespace rondo {

class Postman : public std::enable_shared_from_this<Postman> {
 public:
  Postman(asio::io_context& context, std::shared_ptr<shm::Borrower> borrower)
      : borrower_(std::move(borrower)), mailbox_(context) {}
  /// Any thread, once. Errors: system.
  Result<void> start(Descriptor mailbox);
  /// Any thread: the mailbox is closed and all memory given back soon.
  void stop();

 private:
  // The service thread.
  void wait();
  void take();

  std::shared_ptr<shm::Borrower> borrower_;
  asio::posix::stream_descriptor mailbox_;
};

}  // namespace rondo
