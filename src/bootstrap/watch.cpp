#include "bootstrap/watch.hpp"

#include "bootstrap/process.hpp"

namespace rondo::bootstrap {

bool is_other_process_here(Rank rank, Rank other, const std::vector<Person>& persons) {
  const Person &here = persons[rank], &there = persons[other];
  return there.boot == here.boot && there.process.pid_namespace == here.process.pid_namespace &&
         there.process.start != 0 && there.process != here.process;
}

std::optional<Rank> watched_by(Rank rank, const std::vector<Person>& persons) {
  const auto world = Rank(persons.size());
  for (Rank back = 1; back < world; ++back)
    if (const Rank other = (rank + world - back) % world; is_other_process_here(rank, other, persons))
      return other;
  return std::nullopt;
}

std::shared_ptr<Watch> Watch::start(asio::io_context& context, const Person& person,
                                    std::function<void()> ended) {
  Descriptor process = open_process(person.process);
  if (!process) return nullptr;
  const auto watch = std::make_shared<Watch>(context);
  asio::error_code refused;
  watch->process_.assign(process.get(), refused);
  if (refused) return nullptr;
  process.release();
  watch->process_.async_wait(asio::posix::stream_descriptor::wait_read,
                             [watch, ended = std::move(ended)](const asio::error_code& error) {
                               if (!error && watch->process_.is_open()) ended();
                             });
  return watch;
}

void Watch::stop() noexcept {
  asio::error_code ignored;
  process_.close(ignored);
}

}  // namespace rondo::bootstrap
