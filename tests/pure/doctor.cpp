// rondo doctor: limits, cores, clocks and variables of machines on paper.
#include "doctor.hpp"

#include <fstream>
#include <sstream>

#include "cli/doctor/files.hpp"

using namespace rondo;
using namespace rondo::test;

TEST_CASE("doctor: a good machine gets no complaint, and every check speaks") {
  const Findings found = judge(good_machine(), {});
  for (const Finding& finding : found) {
    CHECK_MESSAGE(finding.severity == Severity::ok, finding.check, ": ", finding.what);
    CHECK_FALSE(finding.what.empty());
    CHECK(finding.why.empty());
  }
  CHECK(found.size() == 15);
}

TEST_CASE("doctor: descriptors are counted for the ranks that are planned") {
  Machine machine = good_machine();
  machine.limits.descriptors = {64, 4096};
  const Finding few = only(machine, "descriptors", {32u, ""});
  CHECK(few.severity == Severity::problem);
  CHECK(has(few.what, "ulimit -n is 64; 32 ranks need about 112"));
  CHECK(has(few.fix, "ulimit -n 1024"));
  CHECK(complaints(machine, "descriptors", {16u, ""}).empty());
  CHECK_FALSE(complaints(machine, "descriptors", {17u, ""}).empty());
  CHECK(has(praise(machine, "descriptors"), "enough for 16 ranks"));
  // Nobody said that there would be as many ranks as cores.
  machine.cpus = {32, 32, std::nullopt};
  CHECK(only(machine, "descriptors").severity == Severity::warning);
  // The user cannot raise a hard limit.
  machine.limits.descriptors = {64, 64};
  CHECK(has(only(machine, "descriptors", {32u, ""}).fix, "the hard limit is 64"));
  CHECK(has(only(machine, "descriptors", {32u, ""}).fix, "limits.conf"));
  // Rank 0 has connections to ranks of other machines, too.
  machine.limits.descriptors = {1024, 1024};
  machine.variables["WORLD_SIZE"] = "1000";
  CHECK(has(only(machine, "descriptors", {8u, ""}).what, "8 ranks of 1000 need about 2024"));
  machine.limits.descriptors = {};
  CHECK(praise(machine, "descriptors") == "unlimited\n");
}

TEST_CASE("doctor: the number of ranks that fit is the largest") {
  for (uint64_t now = 30; now < 300; ++now) {
    Machine machine = good_machine();
    machine.limits.descriptors = {now, now};
    const std::string text = praise(machine, "descriptors", {1u, ""});
    const auto most = std::stoull(text.substr(text.find("for ") + 4));
    CHECK(descriptors_needed(most, most) <= now);
    CHECK(descriptors_needed(most + 1, most + 1) > now);
  }
}

TEST_CASE("doctor: little locked memory is worth a word only where there is an RDMA device") {
  Machine machine = good_machine();
  CHECK(has(praise(machine, "locked memory"), "64 KiB, and nothing here needs any"));
  machine.rdma = {{"mlx5_0", "ACTIVE", "Ethernet", "eth0", 1, {{3, ip("10.0.0.5"), "RoCE v2"}}}};
  machine.has_rdma_transport = true;
  const Finding little = only(machine, "locked memory");
  CHECK(little.severity == Severity::warning);
  CHECK(has(little.what, "64 KiB"));
  CHECK(has(little.why, "ENOMEM"));
  CHECK(has(little.fix, "ulimit -l unlimited"));
  machine.has_rdma_transport = false;
  CHECK(only(machine, "locked memory").severity == Severity::note);
  machine.limits.may_lock = true;
  CHECK(complaints(machine, "locked memory").empty());
  machine.limits.may_lock = false;
  machine.limits.locked_bytes = {};
  CHECK(complaints(machine, "locked memory").empty());
}

TEST_CASE("doctor: /dev/shm is not used, so it may be small or missing") {
  Machine machine = good_machine();
  machine.dev_shm = {true, 1 << 20};
  CHECK(has(praise(machine, "/dev/shm"), "1 MiB; Rondo does not use it"));
  machine.dev_shm = {};
  CHECK(has(praise(machine, "/dev/shm"), "missing; Rondo does not use it"));
}

TEST_CASE("doctor: a limit of files is one of shared memory") {
  Machine machine = good_machine();
  machine.limits.file_bytes = {1 << 20, 1 << 20};
  CHECK(only(machine, "file size").severity == Severity::warning);
  CHECK(has(only(machine, "file size").what, "ulimit -f is 1 MiB"));
  CHECK_FALSE(has(only(machine, "file size", {2u, ""}).what, "a rank's shared memory"));
  machine.variables["RONDO_TRANSPORT"] = "shm";
  CHECK(only(machine, "file size", {2u, ""}).severity == Severity::warning);  // enough for the ranks
  machine.limits.file_bytes = {100 << 10, 100 << 10};
  CHECK(only(machine, "file size", {2u, ""}).severity == Severity::problem);
  CHECK(has(only(machine, "file size", {2u, ""}).fix, "ulimit -f unlimited"));
  machine.variables.clear();
  CHECK(has(only(machine, "file size", {2u, ""}).why, "TCP"));
  machine.limits.file_bytes = {0, 0};
  machine.copies.shared = "memfd_create: File too large";
  CHECK(has(only(machine, "peer copies").fix, "ulimit -f"));
}

TEST_CASE("doctor: what falls back when copies between processes fail") {
  Machine machine = good_machine();
  machine.copies = {"memfd_create: Operation not permitted", "process_vm_readv: Operation not permitted"};
  Findings found = complaints(machine, "peer copies");
  REQUIRE(found.size() == 2);
  CHECK(found[0].severity == Severity::warning);
  CHECK(has(found[0].what, "memfd_create"));
  CHECK(has(found[0].why, "TCP"));
  CHECK(found[1].severity == Severity::note);
  CHECK(has(found[1].why, "shared memory"));
  machine.variables["RONDO_TRANSPORT"] = "shm";
  CHECK(complaints(machine, "peer copies")[0].severity == Severity::problem);
}

TEST_CASE("doctor: ranks, cores and the quota of a container") {
  Machine machine = good_machine();
  CHECK(complaints(machine, "cores", {8u, ""}).empty());
  CHECK(has(only(machine, "cores", {9u, ""}).what, "9 ranks for 8 cores"));
  machine.cpus.usable = 2;
  CHECK(has(praise(machine, "cores"), "2 of 8 (affinity)"));
  CHECK(has(only(machine, "cores", {4u, ""}).what, "4 ranks for 2 cores"));
  machine.cpus = {8, 8, 2.5};
  const Findings found = complaints(machine, "cores", {4u, ""});
  REQUIRE(found.size() == 2);
  CHECK(has(found[0].what, "8 cores are visible, but the container may use 2.5"));
  CHECK(has(found[0].fix, "2 cores"));
  CHECK(has(found[1].what, "4 ranks for 2 cores"));
  machine.cpus.quota = 0.5;
  CHECK(has(only(machine, "cores", {1u, ""}).fix, "1 core "));
  machine.cpus.quota = 8;
  CHECK(complaints(machine, "cores", {8u, ""}).empty());
}

TEST_CASE("doctor: a slow clock source is noted") {
  Machine machine = good_machine();
  machine.clock_source = "hpet";
  CHECK(only(machine, "clock").severity == Severity::note);
  CHECK(has(only(machine, "clock").what, "hpet"));
  machine.clock_source = "kvm-clock";  // read without a system call
  CHECK(complaints(machine, "clock").empty());
}

TEST_CASE("doctor: every wrong variable is named, with what it may be") {
  Machine machine = good_machine();
  machine.variables = {{"RONDO_TRANSPORT", "carrier"}, {"RONDO_TIMEOUT", "soon"}, {"RONDO_LOG", "loud"},
                       {"RONDO_PORTS", "9-1"},         {"RONDO_ROOT", "host"},    {"HOME", "/root"},
                       {"RONDO_ALGORITHM", "ring"},    {"RONDO_NODE", ""}};
  const Findings found = complaints(machine, "environment");
  CHECK(found.size() == 5);
  const auto named = [&](const std::string& text) {
    return std::ranges::any_of(
        found, [&](const Finding& f) { return f.severity == Severity::problem && has(f.what, text); });
  };
  CHECK(named("RONDO_TRANSPORT=carrier"));
  CHECK(named("auto, tcp, shm"));
  CHECK(named("RONDO_TIMEOUT=soon"));
  CHECK(named("RONDO_LOG=loud"));
  CHECK(named("RONDO_PORTS=9-1"));
  CHECK(named("RONDO_ROOT=host"));
}

TEST_CASE("doctor: variables that are right, for a rank or for none") {
  Machine machine = good_machine();
  machine.variables = {{"RONDO_TRANSPORT", "tcp"}, {"RONDO_SECRET", "s"}, {"RONDO_PORTS", "45000-45010"}};
  CHECK(has(praise(machine, "environment"), "3 RONDO_ variables set, rightly"));
  machine.variables = {
      {"RONDO_RANK", "7"}, {"RONDO_WORLD", "8"}, {"RONDO_ROOT", "10.0.0.5:29500"}, {"RONDO_SECRET", "s"}};
  CHECK(complaints(machine, "environment").empty());
  CHECK(has(praise(good_machine(), "environment"), "no RONDO_ variable"));
}

TEST_CASE("doctor: variables that contradict each other") {
  Machine machine = good_machine();
  machine.variables = {{"RONDO_RANK", "8"}, {"RONDO_WORLD", "8"}, {"RONDO_ROOT", "unix:@a"}};
  CHECK(has(only(machine, "environment").what, "RONDO_RANK=8"));
  CHECK(only(machine, "environment").severity == Severity::problem);
  machine.variables = {{"RONDO_RANK", "1"}};
  CHECK(has(only(machine, "environment").what, "RONDO_WORLD"));
  machine.variables = {{"RONDO_WORLD", "4"}};
  CHECK(complaints(machine, "environment", {4u, ""}).empty());
  CHECK(only(machine, "environment", {5u, ""}).severity == Severity::problem);
  machine.variables = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  CHECK(only(machine, "environment").severity == Severity::warning);
  CHECK(has(only(machine, "environment").what, "OMPI_COMM_WORLD_RANK=1"));
  // The file is read, too.
  machine.variables = {{"RONDO_SECRET", "s"}, {"RONDO_SECRET_FILE", "/proc/version"}};
  CHECK(only(machine, "environment").severity == Severity::note);
  machine.variables = {{"RONDO_SECRET_FILE", "/no/such/file"}};
  CHECK(has(only(machine, "environment").what, "RONDO_SECRET_FILE=/no/such/file"));
  machine.variables = {{"RONDO_TUNING", "x"}};
  machine.tuning_error = "x: cannot be read";
  CHECK(has(only(machine, "environment").what, "x: cannot be read"));
}

TEST_CASE("doctor: a name that is nearly one of Rondo's is a slip") {
  Machine machine = good_machine();
  machine.variables = {{"RONDO_TRANSPROT", "tcp"}};
  CHECK(only(machine, "environment").severity == Severity::warning);
  CHECK(has(only(machine, "environment").fix, "RONDO_TRANSPORT"));
  machine.variables = {{"RONDO_HOME", "/opt"}};
  CHECK(only(machine, "environment").severity == Severity::note);
}

TEST_CASE("doctor: every documented variable is known") {
  std::ifstream text(std::string(RONDO_SOURCE_ROOT) + "/docs/launching.md");
  REQUIRE(text.good());
  size_t documented = 0;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("| RONDO_") || line.starts_with("| RONDO_ROOT |  ")) continue;
    std::istringstream names(line.substr(2, line.find('|', 2) - 2));
    for (std::string name; names >> name;) {
      if (!name.starts_with("RONDO_")) continue;
      if (name.back() == ',') name.pop_back();
      documented++;
      CHECK_MESSAGE(std::ranges::find(variable_names, name) != variable_names.end(), name);
    }
  }
  CHECK(documented >= 15);
}

TEST_CASE("doctor: fields of /proc files") {
  const std::string status = "Name:\tcat\nPid:\t7\nNSpid:\t7\t1\nCapEff:\t00ff\n";
  CHECK(field(status, "Name:") == "cat");
  CHECK(field(status, "NSpid:") == "7\t1");
  CHECK(field(status, "CapEff:") == "00ff");
  CHECK_FALSE(field(status, "pid:").has_value());
}
