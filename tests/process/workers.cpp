#include "workers.hpp"

#include <fmt/format.h>

#include <chrono>
#include <sstream>

#include "base/random.hpp"

namespace rondo::test {

std::optional<Report> report(const Ended& ended, const std::string& label) {
  for (const auto& line : lines(ended.out)) {
    if (!line.starts_with(label + " ")) continue;
    std::istringstream words(line.substr(label.size()));
    Report found;
    if (!(words >> found.at >> found.took >> found.code >> found.peer)) continue;
    std::getline(words, found.text);
    return found;
  }
  return std::nullopt;
}

double number_after(const Ended& ended, const std::string& label) {
  for (const auto& line : lines(ended.out))
    if (line.starts_with(label + " ")) return std::atof(line.c_str() + label.size());
  return -1;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Workers::Workers(const Job& job) {
  const std::string root = fmt::format("RONDO_ROOT=unix:@rondo-test-{}", random_number());
  for (uint32_t rank = 0; rank < job.world; rank++) {
    std::vector<std::string> variables{root, "RONDO_SECRET=s", fmt::format("RONDO_RANK={}", rank),
                                       fmt::format("RONDO_WORLD={}", job.world),
                                       "RONDO_TRANSPORT=" + job.transport};
    variables.insert(variables.end(), job.environment.begin(), job.environment.end());
    if (!job.own.empty()) variables.insert(variables.end(), job.own[rank].begin(), job.own[rank].end());
    std::vector<std::string> words{job.program};
    if (!job.limits.empty()) words = {"/bin/sh", "-c", job.limits + " && exec \"$0\" \"$@\"", job.program};
    words.insert(words.end(), job.arguments.begin(), job.arguments.end());
    ranks_.push_back(std::make_unique<Command>(words, variables));
  }
}

bool Workers::all_say(const std::string& text, double limit_s) {
  for (const auto& rank : ranks_)
    if (!rank->wait_for_output(text, limit_s)) return false;
  return true;
}

std::vector<Ended> Workers::wait(int but, double limit_s) {
  std::vector<Ended> all(ranks_.size());
  for (uint32_t rank = 0; rank < world(); rank++)
    if (int(rank) != but) all[rank] = ranks_[rank]->wait(limit_s);
  return all;
}

std::vector<Situation> situations() {
  std::vector<Situation> all;
  for (const std::string transport : {"tcp", "shm"})
    for (const auto& [world, victim] : {std::pair(2u, 0u), std::pair(4u, 2u), std::pair(8u, 5u)})
      all.push_back({transport, world, victim});
  return all;
}

}  // namespace rondo::test
