// Reading the small files of /proc and /sys.
#pragma once
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/text_file.hpp"

namespace rondo::cli::doctor {

/// Without the line's end; empty: there is no such file.
inline std::string content(const std::string& path) {
  auto text = read_text(path, size_t(1) << 20);
  if (!text) return {};
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return std::move(*text);
}

/// The names in a folder, sorted; none: there is no such folder.
inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names, [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;  // 2 before 10
  });
  return names;
}

/// What follows `key` in its line of a text such as /proc/self/status, without blanks around it.
inline std::optional<std::string> field(const std::string& text, const std::string& key) {
  size_t at = text.starts_with(key) ? 0 : text.find("\n" + key);
  if (at == text.npos) return std::nullopt;
  at = text.find(key, at) + key.size();
  std::string value = text.substr(at, text.find('\n', at) - at);
  constexpr const char* blanks = " \t";
  const size_t first = value.find_first_not_of(blanks);
  if (first == value.npos) return "";
  return value.substr(first, value.find_last_not_of(blanks) - first + 1);
}

}  // namespace rondo::cli::doctor
