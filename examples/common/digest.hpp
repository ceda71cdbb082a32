// Proof of which bytes something was.
#pragma once
#include <string>
#include <string_view>

namespace trainer {

/// SHA-256 as 64 hexadecimal digits.
std::string sha256_of(std::string_view bytes);

}  // namespace trainer
