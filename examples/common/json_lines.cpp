#include "json_lines.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace trainer {
namespace {

rondo::Error cannot_write(const std::string& path) {
  return {rondo::ErrorCode::system, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
}

}  // namespace

rondo::Result<JsonLines> JsonLines::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return cannot_write(path);
  return JsonLines(path, file);
}

rondo::Result<void> JsonLines::rename(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) return cannot_write(path);
  path_ = path;
  return {};
}

rondo::Result<void> JsonLines::write(const nlohmann::ordered_json& line) {
  if (std::fprintf(file_.get(), "%s\n", line.dump().c_str()) < 0 || std::fflush(file_.get()) != 0)
    return cannot_write(path_);
  return {};
}

rondo::Result<void> add_line(const std::string& path, const nlohmann::ordered_json& line) {
  std::FILE* file = std::fopen(path.c_str(), "ab");  // one write, at the end whoever else writes
  if (!file) return cannot_write(path);
  const bool written = std::fputs((line.dump() + "\n").c_str(), file) >= 0;
  if (std::fclose(file) != 0 || !written) return cannot_write(path);
  return {};
}

rondo::Result<void> make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (!failure) return {};
  return rondo::Error{rondo::ErrorCode::system,
                      fmt::format("cannot make the folder {}: {}", path, failure.message())};
}

rondo::Result<void> write_file(const std::string& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return cannot_write(path);
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (std::fclose(file) != 0 || !written) return cannot_write(path);
  return {};
}

}  // namespace trainer
