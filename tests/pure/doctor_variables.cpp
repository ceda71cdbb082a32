// rondo doctor: variables that are right or wrong only beside others.
#include "doctor.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

using Variables = std::map<std::string, std::string>;

Machine with(Variables variables) {
  Machine machine = good_machine();
  machine.variables = std::move(variables);
  return machine;
}

Findings judged(const Variables& variables, const Plan& plan = {}) {
  return complaints(with(variables), "environment", plan);
}

// What is wrong, where only that is.
std::string fault_of(const Variables& variables, const Plan& plan = {}) {
  const Finding finding = only(with(variables), "environment", plan);
  CHECK(finding.severity == Severity::problem);
  return finding.what;
}

// Joins `more` to what a launcher has told rank 1 of 2.
Variables told(Variables more) {
  more.insert({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}});
  return more;
}

}  // namespace

TEST_CASE("doctor: TLS is right beside a secret, and where there is one rank") {
  CHECK(judged({{"RONDO_SECRET", "x"}, {"RONDO_TLS", "1"}}).empty());
  CHECK(judged({{"RONDO_SECRET_FILE", "/proc/version"}, {"RONDO_TLS", "1"}}).empty());
  CHECK(judged(told({{"RONDO_SECRET", "x"}, {"RONDO_TLS", "1"}}), {2u, ""}).empty());
  CHECK(judged({{"RONDO_TLS", "1"}}, {1u, ""}).empty());
  CHECK(has(fault_of(told({{"RONDO_TLS", "1"}})), "RONDO_TLS=1: TLS takes its keys"));
  CHECK(has(fault_of({{"RONDO_SECRET", "x"}, {"RONDO_TLS", "yes"}}), "RONDO_TLS=yes"));
}

TEST_CASE("doctor: it is said what TLS means for the data") {
  const auto said = [](Variables variables) { return praise(with(std::move(variables)), "TLS"); };
  CHECK(has(said({}), "off (RONDO_TLS)"));
  CHECK(has(said({{"RONDO_TLS", "0"}}), "off (RONDO_TLS)"));
  CHECK(has(said({{"RONDO_TLS", "1"}}),
            "data in shared memory, where the ranks are all on one machine, are not"));
  CHECK(has(said({{"RONDO_TLS", "1"}, {"RONDO_TRANSPORT", "tcp"}}), "the data of every rank do"));
  CHECK(has(said({{"RONDO_TLS", "yes"}}), "see environment"));
}

TEST_CASE("doctor: before there are ranks, the secret may still come from rondo run") {
  for (const Variables& variables : {Variables{{"RONDO_TLS", "1"}}, {{"RONDO_ADVERTISE", "203.0.113.2"}}}) {
    const Finding finding = only(with(variables), "environment", {2u, ""});
    CHECK(finding.severity == Severity::warning);
    CHECK(has(finding.what, "there is no"));
    CHECK(has(finding.fix, "rondo run"));
  }
}

TEST_CASE("doctor: an advertised port needs RONDO_PORTS, and so many as there are") {
  const auto advertise = [](Variables more) {
    more.insert({{"RONDO_SECRET", "x"}, {"RONDO_ADVERTISE", "203.0.113.2:9000"}});
    return more;
  };
  CHECK(judged(advertise({{"RONDO_PORTS", "45000-45003"}})).empty());
  CHECK(has(fault_of(advertise({})), "RONDO_PORTS, which is not set"));
  CHECK(has(fault_of(advertise({{"RONDO_PORTS", "1-60000"}})), "RONDO_PORTS has more"));
  // The wrong one alone is named.
  CHECK(has(fault_of(advertise({{"RONDO_PORTS", "9-1"}})), "RONDO_PORTS=9-1"));
}

TEST_CASE("doctor: where rank 0 listens is judged beside the root") {
  const Variables listen{{"RONDO_SECRET", "x"}, {"RONDO_LISTEN", "10.0.0.2:29700"}};
  const auto at = [&](const std::string& root) {
    Variables variables = listen;
    variables["RONDO_ROOT"] = root;
    return variables;
  };
  CHECK(judged(at("203.0.113.1:29700")).empty());
  CHECK(judged(listen).empty());
  CHECK(judged(listen, {{}, "203.0.113.1:29700"}).empty());
  CHECK(judged(at("203.0.113.1:29700"), {2u, "203.0.113.1:29700"}).empty());
  CHECK(has(fault_of(at("unix:@any")), "is for a root that is a host and a port, not unix:@any"));
  CHECK(has(fault_of(listen, {{}, "unix:@here"}), "not unix:@here"));
  CHECK(has(fault_of(at("nowhere")), "RONDO_ROOT=nowhere"));
  // Only rank 0 looks at it.
  Variables other = at("unix:@any");
  other.insert({{"RONDO_RANK", "1"}, {"RONDO_WORLD", "2"}});
  CHECK(judged(other).empty());
}

TEST_CASE("doctor: faults are of ranks that there are") {
  const Variables fault{{"RONDO_FAULT", "kill@rank=7,operation=3"}};
  const auto beside = [&](Variables more) {
    more.insert(fault.begin(), fault.end());
    return more;
  };
  const auto injected = [](const Findings& found) {
    return found.size() == 1 && found[0].severity == Severity::warning && has(found[0].why, "on purpose");
  };
  CHECK(injected(judged(fault)));
  CHECK(injected(judged(fault, {8u, ""})));
  CHECK(has(fault_of(fault, {4u, ""}), "rank=7 must be a whole number from 0 to 3"));
  CHECK(has(fault_of(beside({{"RONDO_WORLD", "7"}})), "from 0 to 6"));
  CHECK(injected(judged(beside({{"RONDO_WORLD", "8"}}), {4u, ""})));  // others are elsewhere
  CHECK(has(fault_of(told(fault), {2u, ""}), "from 0 to 1"));
  // Ranks of other machines, of whom nobody has said how many.
  CHECK(injected(judged(fault, {4u, "203.0.113.1:29700"})));
  CHECK(has(fault_of(fault, {4u, "127.0.0.1:29700"}), "from 0 to 3"));
}

TEST_CASE("doctor: a rank is judged by the world that is set, not by the ranks that are planned here") {
  CHECK(judged({{"RONDO_RANK", "7"}, {"RONDO_WORLD", "8"}, {"RONDO_ROOT", "unix:@a"}}, {4u, ""}).empty());
  CHECK(has(fault_of({{"RONDO_RANK", "7"}, {"RONDO_ROOT", "unix:@a"}}, {4u, ""}), "RONDO_WORLD"));
  CHECK(has(fault_of(told({{"RONDO_RANK", "5"}})), "RONDO_RANK=5"));
}

TEST_CASE("doctor: one wrong variable neither hides nor causes other findings") {
  const Findings two = judged({{"RONDO_TIMEOUT", "soon"},
                               {"RONDO_SECRET_FILE", "/no/such/file"},
                               {"RONDO_TLS", "1"},
                               {"RONDO_ADVERTISE", "203.0.113.2"}});
  REQUIRE(two.size() == 2);
  CHECK(has(two[0].what, "RONDO_SECRET_FILE=/no/such/file"));
  CHECK(two[0].severity == Severity::problem);
  CHECK(has(two[1].what, "RONDO_TIMEOUT=soon"));
  // What is wrong together is found beside what is wrong by itself.
  const Findings missing = judged({{"RONDO_TIMEOUT", "soon"}, {"RONDO_RANK", "1"}});
  REQUIRE(missing.size() == 2);
  CHECK(has(missing[0].what, "RONDO_TIMEOUT=soon"));
  CHECK(has(missing[1].what, "RONDO_WORLD"));
  CHECK(has(fault_of({{"RONDO_WORLD", "many"}, {"RONDO_RANK", "3"}, {"RONDO_ROOT", "unix:@a"}}),
            "RONDO_WORLD=many"));
  CHECK(has(fault_of(told({{"RONDO_WORLD", "0"}}), {2u, ""}), "RONDO_WORLD=0"));
}
