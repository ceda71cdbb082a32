// What a check has to say.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::cli::doctor {

enum class Severity : uint8_t {
  ok,
  note,     // good to know
  warning,  // works, but slower or less than one might expect
  problem,  // a job fails
};

constexpr std::string_view name_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::problem:
      return "problem";
  }
  return "?";
}

struct Finding {
  std::string check;
  Severity severity = Severity::ok;
  std::string what, why, fix;  // why and fix are empty where all is well
};
using Findings = std::vector<Finding>;

}  // namespace rondo::cli::doctor
