// A log of one JSON object per line.
#pragma once
#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "rondo/result.hpp"

namespace trainer {

class JsonLines {
 public:
  /// Starts an empty file.
  static rondo::Result<JsonLines> create(const std::string& path);
  /// Replaces the file at `path` in one go. Whoever still has that one open writes to nothing that is seen.
  rondo::Result<void> rename(const std::string& path);
  /// The line is in the file when this returns: who follows it sees whole lines, and a full disk shows at once.
  rondo::Result<void> write(const nlohmann::ordered_json& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  JsonLines(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Adds a line to a file that others may add to at the same time.
rondo::Result<void> add_line(const std::string& path, const nlohmann::ordered_json& line);
rondo::Result<void> make_folder(const std::string& path);
/// Replaces the file's content.
rondo::Result<void> write_file(const std::string& path, const std::string& content);

}  // namespace trainer
