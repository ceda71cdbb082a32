#include "communicator/state_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rondo {
namespace {

using nlohmann::ordered_json;

constexpr size_t most_told = 16;

double milliseconds_between(TimePoint from, TimePoint to) {
  const double exact = std::chrono::duration<double, std::milli>(to - from).count();
  return double(int64_t(exact * 1000)) / 1000;
}

ordered_json told(const engine::Record& record, TimePoint now) {
  const bool running = record.outcome == engine::Record::Outcome::running;
  ordered_json json{{"operation", record.sequence}, {"call", describe(record.call)}};
  if (record.collective != 0) json["collective"] = record.collective;
  json["algorithm"] = name_of(*record.call.algorithm);
  json["outcome"] = running ? "running" : record.outcome == engine::Record::Outcome::done ? "done" : "failed";
  json["took_ms"] = milliseconds_between(record.began, running ? now : record.ended);
  json["began_ms_ago"] = milliseconds_between(record.began, now);
  return json;
}

}  // namespace

std::string state_json(const bootstrap::Job& job, const DataPath& path, const engine::Engine& engine,
                       const engine::Failure& failure) {
  ordered_json json{{"rank", job.rank()},
                    {"world", job.world()},
                    {"epoch", fmt::format("{:016x}", job.epoch())},
                    {"transport", path.transport},
                    {"transport_reason", job.transport_reason()},
                    {"tls", path.tls},
                    {"address", job.address()},
                    {"address_reason", job.address_reason()},
                    {"nodes", job.nodes()},
                    {"cores", job.policy().cores},
                    {"algorithm", job.policy().algorithm},
                    {"tuning", job.policy().table},
                    {"reproducible", job.policy().reproducible},
                    {"failure", nullptr}};
  if (failure.is_set()) {
    const Error error = failure.get();
    json["failure"] = {{"code", name_of(error.code)}, {"message", error.message}, {"peer", nullptr}};
    if (error.peer) json["failure"]["peer"] = *error.peer;
  }
  json["operations"] = ordered_json::array();
  const auto& recorder = engine.recorder();
  const uint64_t last = recorder.last();
  const TimePoint now = Clock::now();
  for (uint64_t s = last; s > 0 && s + most_told > last; s--)
    if (const auto record = recorder.at(s)) json["operations"].push_back(told(*record, now));
  // Texts may quote what a peer said: whatever is no UTF-8 is replaced.
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace rondo
