#include "elastic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <span>

namespace trainer {
namespace {

using rondo::Communicator;
using rondo::Result;

// The training stands while newcomers are waited for.
constexpr std::chrono::seconds newcomer_patience{30};

// Where a rank stands, as the others need to know.
struct Standing {
  uint64_t begun, steps, notes;
};

template <class T>
std::span<uint8_t> bytes_of(std::span<T> items) {
  return {reinterpret_cast<uint8_t*>(items.data()), items.size_bytes()};
}

// The first of those furthest on; nothing when no rank has begun.
Result<std::optional<rondo::Rank>> leader_of(std::span<const Standing> ranks) {
  std::optional<rondo::Rank> leader;
  uint64_t least = 0;
  for (rondo::Rank rank = 0; rank < ranks.size(); rank++) {
    if (!ranks[rank].begun) continue;
    least = leader ? std::min(least, ranks[rank].steps) : ranks[rank].steps;
    if (!leader || ranks[rank].steps > ranks[*leader].steps) leader = rank;
  }
  if (leader && ranks[*leader].steps - least > 1)
    return rondo::Error{rondo::ErrorCode::mismatch,
                        fmt::format("some ranks have done {} steps, others {}", least, ranks[*leader].steps)};
  return leader;
}

uint32_t take_wish(const std::string& path) {
  std::ifstream file(path);
  std::string wish;
  std::getline(file >> std::ws, wish);
  wish.resize(wish.find_last_not_of(" \t\r") + 1);  // 0 if there is nothing else
  if (wish.empty()) return 0;
  std::remove(path.c_str());
  uint32_t number = 0;
  const char* const end = wish.data() + wish.size();
  if (const auto read = std::from_chars(wish.data(), end, number); read.ec == std::errc() && read.ptr == end)
    return number;
  std::ranges::replace_if(
      wish, [](unsigned char c) { return c < 32 || c > 126; }, '?');
  fmt::print(stderr, "WARNING: {} says '{}', which is no number of newcomers; it has been removed\n", path,
             wish.substr(0, 40));
  return 0;
}

}  // namespace

bool survivable(const rondo::Error& error) {
  switch (error.code) {
    case rondo::ErrorCode::peer_lost:
    case rondo::ErrorCode::timeout:
    case rondo::ErrorCode::aborted:  // learned of one of these before this call
      return true;
    case rondo::ErrorCode::invalid_argument:
    case rondo::ErrorCode::mismatch:
    case rondo::ErrorCode::refused:
    case rondo::ErrorCode::system:
      return false;
  }
  return false;
}

Result<void> catch_up(Communicator& communicator, State& state, Report& report) {
  std::vector<Standing> ranks(communicator.world());
  const std::span all(ranks), own = all.subspan(communicator.rank(), 1);
  own[0] = {state.begun, state.steps, report.notes().size()};
  if (auto done = communicator.all_gather(bytes_of(own), bytes_of(all)); !done) return done;
  const auto leader = leader_of(ranks);
  if (!leader) return leader.error();
  if (!*leader) return {};
  const Standing& ahead = ranks[**leader];
  const auto is_there = [&](const Standing& rank) { return rank.begun && rank.steps == ahead.steps; };
  if (std::ranges::all_of(ranks, is_there)) return {};

  std::vector<float> learned = state.pack();
  std::vector<Note> notes = report.notes();
  notes.resize(ahead.notes);
  if (auto done = communicator.broadcast(std::span(learned), **leader); !done) return done;
  if (auto done = communicator.broadcast(bytes_of(std::span(notes)), **leader); !done) return done;
  if (is_there(own[0])) return {};
  state.unpack(learned, ahead.steps);
  return report.replace_notes(std::move(notes));
}

Result<bool> finished_with_us(const Logged& log, const std::string& path, uint64_t steps, uint64_t all_steps,
                              const std::vector<Note>& notes, std::span<const uint32_t> worlds) {
  const auto went_on = [&](std::string_view who) {
    return rondo::Error{
        rondo::ErrorCode::refused,
        fmt::format("{} up to step {} ({}); it has done {} steps, ends, and leaves all as it is", who,
                    log.steps(), path, steps)};
  };
  constexpr std::string_view without_us = "the training went on without this rank";
  std::vector<uint32_t> known(worlds.begin(), worlds.end());
  bool same_training = false;
  for (const Note& note : notes) {
    if (const auto* change = std::get_if<ChangeLine>(&note)) known.push_back(change->ranks);
    const auto* own = std::get_if<StepLine>(&note);
    const auto line = own ? log.losses.find(own->step) : log.losses.end();
    if (line == log.losses.end()) continue;
    // A step that was whole here and not there has been redone by fewer ranks.
    if (line->second != own->loss)
      return went_on(same_training ? without_us : "another training, or this one without this rank, went on");
    same_training = true;
  }
  const auto is_known = [&](uint32_t ranks) { return std::ranges::count(known, ranks) > 0; };
  if (log.steps() > steps + 1 || (log.finished && steps < all_steps) ||
      !std::ranges::all_of(log.shrunk_to, is_known))
    return went_on(without_us);
  return log.finished;
}

Result<uint32_t> wanted_newcomers(Communicator& communicator, const std::string& path) {
  std::array<uint32_t, 1> wanted{communicator.rank() == 0 ? take_wish(path) : 0};
  if (auto done = communicator.broadcast(std::span(wanted)); !done) return done.error();
  return wanted[0];
}

bool take_in(Communicator& communicator, uint32_t newcomers) {
  auto grown = communicator.grow(newcomers, {}, {.timeout = newcomer_patience});
  if (grown)
    communicator = std::move(*grown);
  else if (communicator.rank() == 0)
    fmt::print(stderr, "trainer: nobody was taken in: {}\n", grown.error().message);
  return grown.ok();
}

}  // namespace trainer
