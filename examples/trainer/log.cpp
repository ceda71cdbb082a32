#include "log.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace trainer {

nlohmann::ordered_json json_of(const StepLine& line) {
  return {{"step", line.step},
          {"loss", line.loss},
          {"tokens_per_s", line.tokens_per_s},
          {"communication_share", line.communication_share}};
}

nlohmann::ordered_json json_of(const ChangeLine& line) {
  const char* const change = line.change == Change::shrunk ? "shrunk" : "grown";
  return {{change, true}, {"step", line.step}, {"ranks", line.ranks}};
}

nlohmann::ordered_json json_of(const FinalLine& line) {
  return {{"final", true},
          {"held_out_loss", line.held_out_loss},
          {"steps", line.steps},
          {"ranks", line.ranks},
          {"parameters", line.parameters},
          {"seconds", line.seconds},
          {"data_sha256", line.data_sha256},
          {"transport", line.transport}};
}

Logged read_log(const std::string& path, std::filesystem::file_time_type since) {
  Logged logged;
  std::error_code missing;
  if (const auto written = std::filesystem::last_write_time(path, missing); missing || written < since)
    return logged;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const auto has = [&line](const char* name) { return line.contains(name) && line[name].is_number(); };
    if (has("step") && has("loss")) logged.losses[line["step"]] = line["loss"];
    if (line.contains("shrunk") && has("ranks")) logged.shrunk_to.push_back(line["ranks"]);
    if (line.contains("final")) logged.finished = true;
  }
  return logged;
}

}  // namespace trainer
