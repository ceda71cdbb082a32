#include "text.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "digest.hpp"
#include "random.hpp"

namespace trainer {
namespace {

std::string read_all(std::FILE* file) {
  std::string bytes;
  std::array<char, 65536> part;
  while (const size_t count = std::fread(part.data(), 1, part.size(), file)) bytes.append(part.data(), count);
  return bytes;
}

rondo::Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  std::string bytes;
  if (file) bytes = read_all(file.get());
  if (!file || std::ferror(file.get()))
    return rondo::Error{rondo::ErrorCode::system,
                        fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  return bytes;
}

// The Bible's own package keeps it compressed; its program prints it.
std::optional<std::string> bible() {
  std::FILE* pipe = ::popen("bible -l 'gen1:1-rev22:21' </dev/null 2>/dev/null", "r");
  if (!pipe) return std::nullopt;
  std::string bytes = read_all(pipe);
  if (::pclose(pipe) != 0 || bytes.empty()) return std::nullopt;
  return bytes;
}

template <size_t N>
std::string_view pick(const std::array<std::string_view, N>& words, uint64_t& draw) {
  return words[random_below({7, stream::generated_text, draw++}, N)];
}

// "the old king of the valley went to the river"
std::string clause(uint64_t& draw) {
  static constexpr std::array<std::string_view, 20> nouns{
      "king",  "shepherd", "river",    "mountain", "people",   "city",    "servant",
      "field", "son",      "daughter", "house",    "stranger", "prophet", "morning",
      "stone", "garden",   "valley",   "father",   "altar",    "vineyard"};
  static constexpr std::array<std::string_view, 12> qualities{"old",      "great",   "young",  "quiet",
                                                              "faithful", "distant", "bright", "weary",
                                                              "wise",     "little",  "strong", "humble"};
  static constexpr std::array<std::string_view, 12> verbs{"went to", "spoke to", "saw",   "remembered",
                                                          "called",  "left",     "found", "followed",
                                                          "blessed", "built",    "kept",  "loved"};
  static constexpr std::array<std::string_view, 3> articles{"the", "a", "every"};
  const auto thing = [&] {
    std::string words(pick(articles, draw));
    if (random_below({7, stream::generated_text, draw++}, 2))
      words += fmt::format(" {}", pick(qualities, draw));
    words += fmt::format(" {}", pick(nouns, draw));
    if (random_below({7, stream::generated_text, draw++}, 3) == 0)
      words += fmt::format(" of the {}", pick(nouns, draw));
    return words;
  };
  const std::string subject = thing(), object = thing();
  return fmt::format("{} {} {}", subject, pick(verbs, draw), object);
}

}  // namespace

std::string generate_text(size_t size) {
  static constexpr std::array<std::string_view, 6> joints{", and ",   "; but ",  ", for ",
                                                          ", while ", ". Then ", ". And "};
  std::string text;
  for (uint64_t draw = 0; text.size() < size;) {
    std::string sentence = clause(draw);
    sentence[0] = char(sentence[0] - 'a' + 'A');
    while (random_below({7, stream::generated_text, draw++}, 5) < 2) {
      const auto joint = pick(joints, draw);
      sentence += fmt::format("{}{}", joint, clause(draw));
    }
    text += sentence + (random_below({7, stream::generated_text, draw++}, 4) == 0 ? ".\n" : ". ");
  }
  return text;
}

rondo::Result<Text> load_text(const std::string& source) {
  Text text;
  if (source.empty() || source == "bible") {
    auto bytes = bible();
    text.name = "King James Bible";
    if (bytes)
      text.bytes = std::move(*bytes);
    else if (!source.empty())
      return rondo::Error{rondo::ErrorCode::system,
                          "the program `bible` is not there: install bible-kjv and "
                          "bible-kjv-text, or give a text with --data FILE"};
    else
      text.substitute = true;
  } else if (source != "generated") {
    auto bytes = read_file(source);
    if (!bytes) return bytes.error();
    text.name = source;
    text.bytes = std::move(*bytes);
  }
  if (source == "generated" || text.substitute) {
    text.name = "generated sentences";
    text.bytes = generate_text(size_t(2) << 20);
  }
  text.sha256 = sha256_of(text.bytes);
  return text;
}

}  // namespace trainer
