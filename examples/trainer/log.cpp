#include "log.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace trainer {
namespace {

rondo::Error cannot_write(const std::string& path) {
  return {rondo::ErrorCode::system, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
}

}  // namespace

rondo::Result<Log> Log::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return cannot_write(path);
  return Log(path, file);
}

rondo::Result<void> Log::write(const StepLine& line) {
  return write_line(nlohmann::ordered_json{{"step", line.step},
                                           {"loss", line.loss},
                                           {"tokens_per_s", line.tokens_per_s},
                                           {"communication_share", line.communication_share}}
                        .dump());
}

rondo::Result<void> Log::write(const FinalLine& line) {
  return write_line(nlohmann::ordered_json{
      {"final", true},
      {"held_out_loss", line.held_out_loss},
      {"steps", line.steps},
      {"ranks", line.ranks},
      {"parameters", line.parameters},
      {"seconds", line.seconds},
      {"data_sha256", line.data_sha256},
      {"transport",
       line.transport}}.dump());
}

// Each line is flushed: who follows the file sees whole lines, and a full disk shows at once.
rondo::Result<void> Log::write_line(const std::string& line) {
  if (std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 || std::fflush(file_.get()) != 0)
    return cannot_write(path_);
  return {};
}

rondo::Result<void> write_file(const std::string& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return cannot_write(path);
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (std::fclose(file) != 0 || !written) return cannot_write(path);
  return {};
}

}  // namespace trainer
