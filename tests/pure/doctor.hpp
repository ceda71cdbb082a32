// Machines for rondo doctor that exist on paper only.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../text.hpp"
#include "cli/doctor/checks.hpp"

namespace rondo::test {

using namespace rondo::cli::doctor;

inline Ip ip(const char* text) { return asio::ip::make_address(text); }

/// With nothing wrong at all.
inline Machine good_machine() {
  Machine machine;
  machine.limits.descriptors = {4096, 4096};
  machine.limits.locked_bytes = {64 << 10, 64 << 10};
  machine.cpus = {8, 8, std::nullopt};
  machine.dev_shm = {true, uint64_t(1) << 30};
  machine.clock_source = "tsc";
  machine.addresses = {{"lo", ip("127.0.0.1")}, {"eth0", ip("10.0.0.5")}, {"lo", ip("::1")}};
  machine.host = {"node1", {ip("10.0.0.5")}, ""};
  return machine;
}

/// The findings of one check that are more than ok.
inline Findings complaints(const Machine& machine, const std::string& check, const Plan& plan = {}) {
  Findings found = judge(machine, plan);
  std::erase_if(found, [&](const Finding& f) { return f.check != check || f.severity == Severity::ok; });
  return found;
}

/// What a check says where all is well.
inline std::string praise(const Machine& machine, const std::string& check, const Plan& plan = {}) {
  std::string text;
  for (const Finding& finding : judge(machine, plan)) {
    if (finding.check != check) continue;
    CHECK_MESSAGE(finding.severity == Severity::ok, finding.what);
    text += finding.what + "\n";
  }
  return text;
}

/// The only complaint of a check.
inline Finding only(const Machine& machine, const std::string& check, const Plan& plan = {}) {
  const Findings found = complaints(machine, check, plan);
  REQUIRE_MESSAGE(found.size() == 1, check);
  CHECK_FALSE(found[0].why.empty());
  CHECK_FALSE(found[0].fix.empty());
  return found[0];
}

}  // namespace rondo::test
