// An environment that a test makes up.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/environment.hpp"

namespace rondo::test {

using Variables = std::map<std::string, std::string>;

inline Lookup fake(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace rondo::test
