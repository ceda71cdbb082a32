#pragma once
#include <string>

#include "cli/doctor/finding.hpp"
#include "cli/doctor/machine.hpp"

namespace rondo::cli::doctor {

/// A line for each finding, aligned; `why` and `fix` below what is not well; a summary last.
std::string as_text(const Findings& findings);
/// {"rondo", "findings": [{check, severity, what, why, fix}], "machine"}. Secrets are left out.
std::string as_json(const Findings& findings, const Machine& machine);

}  // namespace rondo::cli::doctor
