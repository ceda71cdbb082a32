#include "base/text_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace rondo {

Result<std::string> read_text(const std::string& path, size_t longest) {
  const auto unreadable = [] {
    return Error{ErrorCode::invalid_argument, fmt::format("cannot be read: {}", std::strerror(errno))};
  };
  const auto close = [](std::FILE* stream) { std::fclose(stream); };
  const std::unique_ptr<std::FILE, decltype(close)> stream(std::fopen(path.c_str(), "re"), close);
  if (!stream) return unreadable();
  std::string text(longest + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stream.get()));
  if (std::ferror(stream.get())) return unreadable();
  if (text.size() > longest)
    return Error{ErrorCode::invalid_argument, fmt::format("the file is longer than {} bytes", longest)};
  return text;
}

}  // namespace rondo
