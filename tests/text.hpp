// Looking at what programs and errors say.
#pragma once
#include <string>

namespace rondo::test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rondo::test
