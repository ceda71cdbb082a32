#include "schedule/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schedule/cost.hpp"
#include "schedule/meaning.hpp"

namespace rondo::schedule {
namespace {

constexpr uint32_t largest_costed_world = 256, largest_interpreted_world = 64;

struct Summary {
  uint64_t steps = 0;
  uint64_t least_sent = UINT64_MAX, most_sent = 0;  // chunks that one rank sends
  std::optional<double> latency;                    // in alpha
  std::string chunk_0;                              // what it ends as; empty when not known
};

bool moves_data(const Schedule& schedule) { return schedule.operation != Operation::barrier; }
bool has_peer(const Step& step) { return sends(step) || receives(step); }

std::string final_chunk_0(const Schedule& schedule, const Shape& shape) {
  if (shape.world > largest_interpreted_world) return {};
  if (!moves_data(schedule)) return {};
  if (!reduces(schedule.operation))
    return fmt::format(
        "{}", is_rooted(schedule.operation) && schedule.operation != Operation::gather ? shape.root : 0);
  const Claim claim = claim_of(schedule, shape);
  const Meaning meaning = interpret(Program(claim, Form::unfused, Placement::out_of_place));
  return meaning.chunks.empty() ? std::string() : meaning.values.tree(meaning.chunks[0]);
}

// Calls visit(rank, step) for every step of one rank or of all.
template <class Visit>
void each_step(const Schedule& schedule, const Shape& shape, std::optional<Rank> only, const Visit& visit) {
  const Rank first = only.value_or(0), end = only ? *only + 1 : shape.world;
  for (Rank rank = first; rank < end; rank++)
    schedule.steps(rank, shape_of(schedule.operation, shape, rank),
                   [&](const Step& step) { visit(rank, step); });
}

Summary summarise(const Schedule& schedule, const Shape& shape, std::optional<Rank> only) {
  Summary summary;
  for (Rank rank = only.value_or(0); rank < (only ? *only + 1 : shape.world); rank++) {
    uint64_t sent = 0;
    each_step(schedule, shape, rank, [&](Rank, const Step& step) {
      summary.steps++;
      if (sends(step)) sent += step.chunks;
    });
    summary.least_sent = std::min(summary.least_sent, sent);
    summary.most_sent = std::max(summary.most_sent, sent);
  }
  if (shape.world <= largest_costed_world) {
    const Vector vector{moves_data(schedule) ? schedule.chunks(shape) : 0};
    summary.latency = cost(schedule, shape, vector, {.alpha = 1});
  }
  summary.chunk_0 = final_chunk_0(schedule, shape);
  return summary;
}

// `sent` of `chunks` equal chunks of a vector of m.
std::string fraction(uint64_t sent, uint32_t chunks) {
  if (sent == 0) return "0";
  if (sent % chunks == 0) return sent == chunks ? "m" : fmt::format("{} m", sent / chunks);
  return fmt::format("{}/{} m", sent, chunks);
}

std::string payload(const Schedule& schedule, const Shape& shape, const Summary& summary) {
  if (!moves_data(schedule)) return "none: tokens have no elements";
  const uint32_t chunks = schedule.chunks(shape);
  const std::string most = fraction(summary.most_sent, chunks);
  if (summary.least_sent == summary.most_sent) return most;
  return fmt::format("{} to {}", fraction(summary.least_sent, chunks), most);
}

void print_legend(const Schedule& schedule, const Shape& shape, std::optional<Rank> only,
                  const Write& write) {
  const Summary summary = summarise(schedule, shape, only);
  const auto line = [&](std::string_view name, std::string_view text) {
    write(fmt::format("# {}: {}\n", name, text));
  };
  line("kinds",
       "send to peer; recv from peer; recv_reduce = (from peer) op (own); copy and reduce stay on the rank");
  line("steps", fmt::format("{}{}", summary.steps, only ? fmt::format(" on rank {}", *only) : ""));
  line(only ? fmt::format("payload sent by rank {}", *only) : "payload sent per rank",
       payload(schedule, shape, summary) + (moves_data(schedule) ? ", of a vector of m" : ""));
  line("latency", summary.latency ? fmt::format("{:.0f} alpha", *summary.latency)
                                  : fmt::format("not computed above {} ranks", largest_costed_world));
  if (!moves_data(schedule)) return;
  line(reduces(schedule.operation) ? "chunk 0 is summed as" : "chunk 0 comes from rank",
       summary.chunk_0.empty() ? fmt::format("not computed above {} ranks", largest_interpreted_world)
                               : summary.chunk_0);
}

std::string title(const Schedule& schedule, const Shape& shape) {
  const std::string root = is_rooted(schedule.operation) ? fmt::format(", root {}", shape.root) : "";
  const std::string nodes =
      shape.nodes.empty() ? "" : fmt::format(", ranks on nodes {}", fmt::join(shape.nodes, " "));
  return fmt::format("{} {}, world {}{}{}, {} chunk{}", name_of(schedule.algorithm),
                     name_of(schedule.operation), shape.world, root, nodes, schedule.chunks(shape),
                     schedule.chunks(shape) == 1 ? "" : "s");
}

nlohmann::ordered_json json_of(Rank rank, uint32_t index, const Step& step) {
  nlohmann::ordered_json json{
      {"rank", rank}, {"step", index}, {"round", step.round}, {"kind", name_of(step.kind)}};
  json["peer"] = has_peer(step) ? nlohmann::ordered_json(step.other) : nlohmann::ordered_json();
  json["chunk"] = step.chunk;
  json["chunks"] = step.chunks;
  if (!has_peer(step)) json["source_chunk"] = step.other;
  json["source"] = name_of(step.source);
  json["target"] = name_of(step.target);
  json["wide"] = bool(step.flags & flag::wide);
  json["finish"] = bool(step.flags & flag::finish);
  json["fan"] = bool(step.flags & flag::fan);
  json["published"] = bool(step.flags & flag::published);
  return json;
}

nlohmann::ordered_json json_of(const Schedule& schedule, const Shape& shape, std::optional<Rank> only) {
  const Summary summary = summarise(schedule, shape, only);
  const auto chunks = schedule.chunks(shape);
  const auto share = [&](uint64_t sent) { return moves_data(schedule) ? double(sent) / chunks : 0.0; };
  nlohmann::ordered_json json{{"operation", name_of(schedule.operation)},
                              {"algorithm", name_of(schedule.algorithm)},
                              {"world", shape.world},
                              {"root", shape.root},
                              {"nodes", shape.nodes},
                              {"chunks", chunks},
                              {"step_count", summary.steps}};
  json["payload_per_rank"] = {{"least", share(summary.least_sent)}, {"most", share(summary.most_sent)}};
  json["latency_alphas"] =
      summary.latency ? nlohmann::ordered_json(*summary.latency) : nlohmann::ordered_json();
  json["chunk_0"] =
      summary.chunk_0.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(summary.chunk_0);
  return json;
}

}  // namespace

void print_text(const Schedule& schedule, const Shape& shape, std::optional<Rank> only, const Write& write) {
  write(fmt::format("# {}\n# rank round kind peer chunk\n", title(schedule, shape)));
  each_step(schedule, shape, only, [&](Rank rank, const Step& step) {
    const std::string peer = has_peer(step) ? fmt::format("{}", step.other) : "-";
    write(fmt::format("{} {} {} {} {}\n", rank, step.round, name_of(step.kind), peer, step.chunk));
  });
  print_legend(schedule, shape, only, write);
}

void print_json(const Schedule& schedule, const Shape& shape, std::optional<Rank> only, const Write& write) {
  std::string head = json_of(schedule, shape, only).dump();
  head.pop_back();  // the closing brace comes after the steps
  write(head + ",\"steps\":[");
  bool first = true;
  Rank last = 0;
  uint32_t index = 0;
  each_step(schedule, shape, only, [&](Rank rank, const Step& step) {
    if (rank != last) index = 0;
    last = rank;
    write((first ? "\n" : ",\n") + json_of(rank, index++, step).dump());
    first = false;
  });
  write("\n]}\n");
}

}  // namespace rondo::schedule
