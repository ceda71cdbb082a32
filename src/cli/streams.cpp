#include "cli/streams.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace rondo::cli {

void Streams::add(Started& process, const std::string& prefix) {
  add(std::move(process.output), {prefix, output_});
  add(std::move(process.errors), {prefix, errors_});
}

void Streams::add(Descriptor fd, LineRelay relay) {
  watch_.add(fd.get(), Source::pipe, pipes_.size());
  pipes_.push_back({std::move(fd), std::move(relay)});
}

void Streams::read(size_t index) {
  Pipe& pipe = pipes_[index];
  std::array<char, 65536> buffer;
  const ssize_t count = pipe.fd ? ::read(pipe.fd.get(), buffer.data(), buffer.size()) : -1;
  if (count > 0) {
    pipe.relay.feed({buffer.data(), size_t(count)});
    if (!pipe.relay.outlet().full()) return;
    watch_.remove(pipe.fd.get());
    pipe.paused = true;
  } else if (pipe.fd && (count == 0 || errno != EAGAIN)) {
    pipe.relay.finish();
    watch_.remove(pipe.fd.get());
    pipe.fd = Descriptor();
  }
}

void Streams::pump() {
  pump(output_, output_blocked_);
  pump(errors_, errors_blocked_);
}

void Streams::pump(Outlet& outlet, bool& blocked) {
  const bool was_blocked = blocked;
  outlet.pump();
  blocked = !outlet.empty();
  if (blocked && !was_blocked) watch_.add(outlet.fd(), Source::outlet, 0, EPOLLOUT);
  if (!blocked && was_blocked) watch_.remove(outlet.fd());
  if (outlet.full()) return;
  for (size_t i = 0; i < pipes_.size(); ++i)
    if (pipes_[i].paused && &pipes_[i].relay.outlet() == &outlet) {
      pipes_[i].paused = false;
      watch_.add(pipes_[i].fd.get(), Source::pipe, i);
    }
}

void Streams::drain() {
  for (Pipe& pipe : pipes_) {
    std::array<char, 65536> buffer;
    ssize_t count = 0;
    for (int i = 0; i < 64 && pipe.fd && (count = ::read(pipe.fd.get(), buffer.data(), buffer.size())) > 0;
         ++i)
      pipe.relay.feed({buffer.data(), size_t(count)});
  }
}

void Streams::wait_for_reader(int lifeline, int signals) {
  std::array<pollfd, 4> ready{{{lifeline, POLLIN, 0},
                               {signals, POLLIN, 0},
                               {output_.empty() ? -1 : output_.fd(), POLLOUT, 0},
                               {errors_.empty() ? -1 : errors_.fd(), POLLOUT, 0}}};
  ::poll(ready.data(), ready.size(), -1);
  output_.pump();
  errors_.pump();
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof(info)) == sizeof(info))
    if (info.ssi_signo != SIGCHLD) given_up_ = true;
  if (ready[0].revents != 0) given_up_ = true;
}

void Streams::finish(const std::string& last_words, int lifeline, int signals, bool given_up) {
  given_up_ = given_up;
  for (Pipe& pipe : pipes_) pipe.relay.finish();
  output_.pump();
  errors_.pump();
  while (wanted()) wait_for_reader(lifeline, signals);
  errors_.write(last_words);
  errors_.pump();
  while (wanted()) wait_for_reader(lifeline, signals);
}

}  // namespace rondo::cli
