#include "log.hpp"

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

}  // namespace trainer
