#include "engine/tuning.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <sstream>

#include "base/text_file.hpp"
#include "schedule/catalogue.hpp"

namespace rondo::engine {
namespace {

constexpr uint64_t any = UINT64_MAX;
constexpr const char* title = "# rondo tuning:";

Error wrong(size_t number, const std::string& line, const char* what) {
  return {ErrorCode::invalid_argument, fmt::format("line {} (\"{}\"): {}", number, line, what)};
}

std::optional<Tuning::Situation> situation_in(const std::string& line) {
  Tuning::Situation situation;
  std::istringstream words(line.substr(std::strlen(title)));
  std::string ranks;
  if (!(words >> situation.world >> ranks >> situation.transport) || ranks != "ranks,") return std::nullopt;
  return situation;
}

std::optional<uint64_t> size_in(const std::string& word) {
  if (word == "max") return any;
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return size;
}

const schedule::Schedule* schedule_named(const std::string& operation, const std::string& algorithm) {
  for (const schedule::Schedule& schedule : schedule::catalogue())
    if (name_of(schedule.operation) == operation && name_of(schedule.algorithm) == algorithm)
      return &schedule;
  return nullptr;
}

}  // namespace

Result<Tuning> Tuning::parse(const std::string& text) {
  Tuning tuning;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    number++;
    if (number == 1) {
      const auto situation = line.starts_with(title) ? situation_in(line) : std::nullopt;
      if (!situation) return wrong(number, line, "must be \"# rondo tuning: N ranks, TRANSPORT\"");
      tuning.situation_ = *situation;
      continue;
    }
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string operation, size, algorithm, more;
    if (!(words >> operation >> size >> algorithm) || words >> more)
      return wrong(number, line, "must be an operation, a size and an algorithm");
    const auto most = size_in(size);
    if (!most) return wrong(number, line, "the size must be a number of bytes or max");
    const schedule::Schedule* schedule = schedule_named(operation, algorithm);
    if (schedule == nullptr)
      return wrong(number, line, "there is no such operation, or it has no such algorithm");
    tuning.lines_.push_back({schedule->operation, *most, schedule->algorithm});
  }
  if (number == 0) return wrong(0, "", "the file is empty");
  return tuning;
}

std::string Tuning::text() const {
  std::string text = fmt::format("{} {} ranks, {}\n", title, situation_.world, situation_.transport);
  for (const Line& line : lines_)
    text += fmt::format("{} {} {}\n", name_of(line.operation),
                        line.most == any ? "max" : std::to_string(line.most), name_of(line.algorithm));
  return text;
}

std::optional<schedule::Algorithm> Tuning::find(schedule::Operation operation,
                                                uint64_t bytes) const noexcept {
  for (const Line& line : lines_)
    if (line.operation == operation && bytes <= line.most) return line.algorithm;
  return std::nullopt;
}

Result<Tuning> read_tuning(const std::string& path) {
  const auto wrong_file = [&](const Error& error) {
    return Error{error.code, fmt::format("the tuning file {} (RONDO_TUNING): {}", path, error.message)};
  };
  const auto text = read_text(path, Tuning::longest_text);
  if (!text) return wrong_file(text.error());
  auto tuning = Tuning::parse(*text);
  if (!tuning) return wrong_file(tuning.error());
  return tuning;
}

}  // namespace rondo::engine
