#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "plot.hpp"

namespace trainer {

rondo::Result<Report> Report::create(const std::string& folder, uint64_t steps) {
  Report report(folder, steps);
  if (auto begun = report.take_over(); !begun) return begun.error();
  return report;
}

rondo::Result<void> Report::take_over() {
  if (auto made = make_folder(folder_); !made) return made.error();
  auto log = JsonLines::create(path("log.jsonl.new"));
  if (!log) return log.error();
  for (const auto& note : notes_) {
    auto written = log->write(std::visit([](const auto& line) { return json_of(line); }, note));
    if (!written) return written;
  }
  if (auto renamed = log->rename(path("log.jsonl")); !renamed) return renamed;
  log_ = std::move(*log);
  return {};
}

rondo::Result<void> Report::replace_notes(std::vector<Note> notes) {
  notes_ = std::move(notes);
  return writes() ? take_over() : rondo::Result<void>();
}

rondo::Result<void> Report::step(const StepLine& line) {
  notes_.push_back(line);
  if (!writes()) return {};
  const auto now = std::chrono::steady_clock::now();
  if (line.step == 1 || line.step == steps_ || now - printed_ >= std::chrono::seconds(1)) {
    printed_ = now;
    fmt::print("step {:>{}} / {}   loss {:.3f}   {:>7} tokens/s   communication {:2.0f} %\n", line.step,
               fmt::formatted_size("{}", steps_), steps_, line.loss, grouped(uint64_t(line.tokens_per_s)),
               100 * line.communication_share);
    std::fflush(stdout);
  }
  return log_->write(json_of(line));
}

rondo::Result<void> Report::changed(const ChangeLine& line) {
  notes_.push_back(line);
  if (!writes()) return {};
  fmt::print("ranks {}; {} go on with step {}\n", line.change == Change::shrunk ? "were lost" : "have joined",
             line.ranks, line.step);
  std::fflush(stdout);
  return log_->write(json_of(line));
}

rondo::Result<void> Report::final(const FinalLine& line, const std::string& sample) {
  held_out_loss_ = line.held_out_loss;
  fmt::print("held-out loss {:.3f} nats per byte after {} steps in {:.1f} s\n", line.held_out_loss,
             line.steps, line.seconds);
  if (auto drawn = plot(); !drawn) return drawn;
  if (auto written = write_file(path("sample.txt"), sample); !written) return written;
  if (auto written = log_->write(json_of(line)); !written) return written;
  fmt::print("The model writes:\n{}\n",
             sample.substr(0, sample.find('\n', std::min<size_t>(200, sample.size()))));
  fmt::print("Written: {}, {}, {}\n", path("log.jsonl"), path("loss.svg"), path("sample.txt"));
  std::fflush(stdout);
  return {};
}

rondo::Result<void> Report::plot() const {
  constexpr size_t reach = 12;  // to both sides
  plot::Series each{"training, each step", "#b9d3ea", {}, 1};
  plot::Series mean{"training, mean of 25 steps", plot::colours[0], {}, 2.5};
  std::vector<double> losses;
  for (const auto& note : notes_)
    if (const auto* step = std::get_if<StepLine>(&note)) losses.push_back(step->loss);
  for (size_t i = 0; i < losses.size(); i++) {
    // At the start, where the loss falls fast, only as far forward as back.
    const size_t before = std::min(reach, i), after = std::min(before, losses.size() - 1 - i);
    const auto first = losses.begin() + long(i - before), last = losses.begin() + long(i + after) + 1;
    each.points.push_back({double(i + 1), losses[i]});
    mean.points.push_back({double(i + 1), std::accumulate(first, last, 0.0) / double(last - first)});
  }
  plot::Plot picture{"Loss of a byte-level GPT", {"step"}, {"nats per byte"}, {each, mean}};
  if (held_out_loss_)
    picture.series.push_back({fmt::format("held out, at the end: {:.3f}", *held_out_loss_),
                              plot::colours[1],
                              {{1, *held_out_loss_}, {double(losses.size()), *held_out_loss_}},
                              2,
                              true});
  return write_file(path("loss.svg"), plot::to_svg(picture));
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace trainer
