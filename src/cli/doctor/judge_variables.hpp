// RONDO_ variables as the library will judge them: each together with the others that are right.
#pragma once
#include "cli/doctor/checks.hpp"

namespace rondo::cli::doctor {

struct Judgement {
  Findings found;                            // at most one for each variable
  std::map<std::string, std::string> right;  // the environment, with what is wrong in it left out or replaced
};

/// Of those in variable_names that are set.
Judgement judge_variables(const Machine& machine, const Plan& plan);

}  // namespace rondo::cli::doctor
