// Ranks as Open MPI, MPICH and Slurm describe them; the variables are those that real launchers set.
#include "base/launcher.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>

#include "base/descriptor.hpp"
#include "base/host_list.hpp"
#include "variables.hpp"

using namespace rondo;
using namespace rondo::test;

namespace {

Variables operator+(Variables all, const Variables& changes) {
  for (const auto& [name, value] : changes) all[name] = value;
  return all;
}

const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "640352257"},
                         {"PMIX_RANK", "1"}};
const Variables mpich{{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}, {"MPI_LOCALNRANKS", "5"}, {"PMI_FD", "6"}};
const Variables slurm{{"SLURM_PROCID", "3"},
                      {"SLURM_NTASKS", "6"},
                      {"SLURM_JOB_ID", "1000"},
                      {"SLURM_STEP_ID", "2"},
                      {"SLURM_STEP_NUM_NODES", "2"},
                      {"SLURM_STEP_NODELIST", "node[03-04]"},
                      {"SLURM_JOB_NODELIST", "node[01-04]"},
                      {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}};
const Variables secret{{"RONDO_SECRET", "s"}};
const std::string user = std::to_string(::getuid());

Result<std::string> root_of(const Variables& variables, bool has_secret = false) {
  const Lookup lookup = fake(variables);
  RootQuestion question{find_launcher(lookup), has_secret, 7,
                        [](int socket) { return std::optional<uint32_t>(4000 + socket); }};
  return root_from_launcher(lookup, question);
}

std::string complaint(const Variables& variables, bool has_secret = false) {
  const auto root = root_of(variables, has_secret);
  REQUIRE_FALSE(root.ok());
  CHECK(root.error().code == ErrorCode::invalid_argument);
  return root.error().message;
}

bool says(const std::string& text, const char* word) { return text.find(word) != text.npos; }

}  // namespace

TEST_CASE("launcher: Open MPI, MPICH and Slurm are enough by themselves") {
  const auto one = resolve({}, fake(open_mpi));
  REQUIRE(one.ok());
  CHECK(one->rank == 1u);
  CHECK(one->world == 4u);
  CHECK(one->root == "unix:@rondo-openmpi-" + user + "-640352257");
  const auto two = resolve({}, fake(mpich + Variables{{"PMI_JOBID", "job 9"}}));
  REQUIRE(two.ok());
  CHECK(two->rank == 2u);
  CHECK(two->world == 5u);
  CHECK(two->root == "unix:@rondo-mpich-" + user + "-job 9");
  const auto three = resolve({}, fake(slurm + secret));
  REQUIRE(three.ok());
  CHECK(three->rank == 3u);
  CHECK(three->world == 6u);
  CHECK(three->root == "node03:21002");  // 20000 + (61 * 1000 + 2) mod 12000
}

TEST_CASE("launcher: code, then RONDO_*, torchrun, Open MPI, MPICH, Slurm") {
  const Variables torchrun{
      {"RANK", "4"}, {"WORLD_SIZE", "7"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  const auto rank = [](const Variables& variables) {
    return resolve({}, fake(variables + Variables{{"PMI_JOBID", "9"}}))->rank;
  };
  CHECK(rank(slurm + secret + mpich) == 2u);
  CHECK(rank(slurm + secret + mpich + open_mpi) == 1u);
  CHECK(rank(slurm + secret + mpich + open_mpi + torchrun) == 4u);
  const Variables all = slurm + secret + mpich + open_mpi + torchrun + Variables{{"RONDO_RANK", "5"}};
  CHECK(rank(all) == 5u);
  Options in_code;
  in_code.rank = 0;
  CHECK(resolve(in_code, fake(all))->rank == 0u);
  CHECK(resolve({}, fake(all))->root == "127.0.0.1:29501");
  // A variable on its own is somebody else's.
  CHECK(rank(open_mpi + Variables{{"RANK", "4"}}) == 1u);
  CHECK(rank(mpich + Variables{{"OMPI_COMM_WORLD_RANK", "1"}}) == 2u);
}

TEST_CASE("launcher: a bad value names the launcher's own variable") {
  const auto bad = resolve({}, fake(open_mpi + Variables{{"OMPI_COMM_WORLD_SIZE", "four"}}));
  REQUIRE_FALSE(bad.ok());
  CHECK(says(bad.error().message, "OMPI_COMM_WORLD_SIZE=four"));
  const auto above = resolve({}, fake(slurm + secret + Variables{{"SLURM_PROCID", "6"}}));
  REQUIRE_FALSE(above.ok());
  CHECK(says(above.error().message, "SLURM_PROCID=6"));
  CHECK(says(above.error().message, "SLURM_NTASKS=6"));
}

TEST_CASE("launcher: who is a rank") {
  for (const auto& variables : {open_mpi, mpich, slurm}) CHECK(is_rank(fake(variables)));
  CHECK(is_rank(fake({{"RONDO_RANK", "0"}})));
  CHECK(is_rank(fake({{"RANK", "0"}})));
  CHECK_FALSE(is_rank(fake({})));
  CHECK_FALSE(is_rank(fake({{"PMI_RANK", "0"}})));
  // The script of a Slurm job sees SLURM_PROCID=0, but is no rank; neither is a shell that salloc opened.
  Variables script = slurm;
  script.erase("SLURM_STEP_ID");
  CHECK_FALSE(is_rank(fake(script)));
  CHECK_FALSE(is_rank(fake(slurm + Variables{{"SLURM_STEP_ID", "4294967290"}})));
}

TEST_CASE("launcher: one machine gets a Unix socket of user and job, without port or secret") {
  CHECK(*root_of(open_mpi) == "unix:@rondo-openmpi-7-640352257");
  CHECK(*root_of(mpich) == "unix:@rondo-mpich-7-pid-4006");  // Hydra: whoever holds PMI_FD's other end
  CHECK(*root_of(mpich + Variables{{"PMI_PORT", "vm:4444"}}) == "unix:@rondo-mpich-7-vm:4444");
  CHECK(*root_of(slurm + Variables{{"SLURM_STEP_NUM_NODES", "1"}}) == "unix:@rondo-slurm-7-1000.2");
  // A MASTER_ADDR that was meant for another program does not make two jobs clash.
  const Variables master{{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
  CHECK(*root_of(open_mpi + master) == "unix:@rondo-openmpi-7-640352257");
  // The end tells jobs apart.
  const std::string long_id = "prterun-" + std::string(100, 'h') + "-12345@1";
  const auto root = *root_of(open_mpi + Variables{{"PMIX_NAMESPACE", long_id}});
  CHECK(root.ends_with("h-12345@1"));
  CHECK(root.size() < 100);
}

TEST_CASE("launcher: several machines need a secret, and for mpirun a root; the error says which") {
  const Variables half{{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
  for (const auto& mpi : {open_mpi, mpich}) {
    CHECK(says(complaint(mpi + half), "RONDO_ROOT and RONDO_SECRET not set"));
    CHECK(says(complaint(mpi + half, true), "RONDO_ROOT not set"));
    const Variables master{{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
    CHECK(*root_of(mpi + half + master) == "10.0.0.1:29501");
    // mpirun through Slurm: what Slurm says is about mpirun's helpers.
    CHECK(says(complaint(mpi + half + slurm, true), "RONDO_ROOT not set"));
  }
  CHECK(says(complaint(slurm), "RONDO_SECRET (or RONDO_SECRET_FILE) not set"));
  // srun --mpi=pmi2 sets both, alike.
  const Variables both = slurm + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "6"}, {"PMI_JOBID", "1000.2"}};
  CHECK(says(complaint(both), "RONDO_SECRET"));
  CHECK(*root_of(both, true) == "node03:21002");
  CHECK(*root_of(both + Variables{{"SLURM_STEP_NUM_NODES", "1"}}) == "unix:@rondo-mpich-7-1000.2");
}

TEST_CASE("launcher: one machine whose job has no name: the error says what is missing") {
  Variables nameless = open_mpi;
  nameless.erase("PMIX_NAMESPACE");
  for (const bool has_secret : {false, true}) {
    const auto text = complaint(nameless, has_secret);
    CHECK(says(text, "PMIX_NAMESPACE (or OMPI_MCA_ess_base_jobid) not set"));
    CHECK(says(text, "openmpi said that all ranks are on this machine"));
    CHECK(says(text, "set RONDO_ROOT to unix:@NAME"));
    for (const char* fd : {"x", ""})
      CHECK(says(complaint(mpich + Variables{{"PMI_FD", fd}}, has_secret),
                 "PMI_JOBID (or PMI_PORT, or PMI_FD as a socket that the launcher has opened) not set"));
  }
  const Variables master{{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
  CHECK(*root_of(nameless + master) == "10.0.0.1:29501");
  Variables step = slurm + Variables{{"SLURM_STEP_NUM_NODES", "1"}};
  step.erase("SLURM_JOB_ID");
  CHECK(says(complaint(step), "SLURM_JOB_ID not set"));
}

TEST_CASE(
    "launcher: two launchers that contradict each other are worth a warning, but not where that is normal") {
  const auto doubt = [](const Variables& variables) { return contradiction(fake(variables)).value_or(""); };
  const Variables left_over{{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  CHECK(doubt(left_over + open_mpi) ==
        "RANK=0 and WORLD_SIZE=1 count, but OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=4 say otherwise: "
        "if "
        "the former are left over, unset them");
  CHECK(says(doubt(left_over + mpich), "PMI_RANK=2 and PMI_SIZE=5 say otherwise"));
  CHECK(says(doubt(left_over + slurm), "SLURM_PROCID=3 and SLURM_NTASKS=6 say otherwise"));
  CHECK(says(doubt(open_mpi + mpich), "PMI_RANK=2 and PMI_SIZE=5 say otherwise"));
  for (const auto& alone : {left_over, open_mpi, mpich, slurm}) CHECK(doubt(alone) == "");
  CHECK(doubt(open_mpi + Variables{{"RANK", "1"}, {"WORLD_SIZE", "4"}}) == "");  // they agree
  // Whoever sets Rondo's own means it; torchrun on each machine of an mpirun or srun is meant, and so is
  // rondo run.
  CHECK(doubt(left_over + open_mpi + Variables{{"RONDO_RANK", "0"}}) == "");
  CHECK(doubt(left_over + open_mpi + Variables{{"TORCHELASTIC_RUN_ID", "7"}}) == "");
  CHECK(doubt(left_over + slurm + Variables{{"RONDO_JOB", "7"}}) == "");
  // mpirun through Slurm: of mpirun's helpers.
  CHECK(doubt(open_mpi + slurm) == "");
  CHECK(doubt(open_mpi + slurm + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "6"}}) == "");
}

TEST_CASE("launcher: Slurm's host is the step's first, its port differs between jobs and steps") {
  Variables variables = slurm;
  CHECK(*root_of(variables, true) == "node03:21002");
  CHECK(*root_of(variables + Variables{{"SLURM_STEP_ID", "3"}}, true) == "node03:21003");
  CHECK(*root_of(variables + Variables{{"SLURM_JOB_ID", "1001"}}, true) == "node03:21063");
  CHECK(*root_of(variables + Variables{{"SLURM_JOB_ID", "4294967295"}}, true) != "node03:21002");
  CHECK(says(complaint(variables + Variables{{"SLURM_JOB_ID", "x"}}, true), "SLURM_JOB_ID=x"));
  CHECK(says(complaint(variables + Variables{{"SLURM_STEP_NODELIST", "n[1"}}, true),
             "SLURM_STEP_NODELIST=n[1"));
  variables.erase("SLURM_STEP_NODELIST");
  CHECK(*root_of(variables, true) == "node01:21002");
  variables.erase("SLURM_JOB_NODELIST");
  CHECK(*root_of(variables, true) == "10.0.0.9:21002");
  variables.erase("SLURM_LAUNCH_NODE_IPADDR");
  CHECK(says(complaint(variables, true), "RONDO_ROOT not set"));
}

TEST_CASE("launcher: host lists") {
  for (const auto& example :
       std::vector<std::pair<const char*, const char*>>{{"node1", "node1"},
                                                        {"node1,node2", "node1"},
                                                        {"node[1-4]", "node1"},
                                                        {"node[007-012,3],other", "node007"},
                                                        {"node[5,1-2]", "node5"},
                                                        {"rack[1-2]node[03-04]-ib", "rack1node03-ib"},
                                                        {"login.lan,node[1-2]", "login.lan"}}) {
    CAPTURE(example.first);
    CHECK(first_host(example.first) == std::optional<std::string>(example.second));
  }
  for (const char* list : {"", ",a", "n[", "n[]", "n[a]", "n[1-]", "n[1-x]", "n]1[", "[", "a b"}) {
    CAPTURE(list);
    CHECK_FALSE(first_host(list).has_value());
  }
}

TEST_CASE("launcher: the process behind a Unix socket") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Descriptor one(ends[0]), other(ends[1]);
  CHECK(process_behind(one.get()) == std::optional<uint32_t>(::getpid()));
  const Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(process_behind(file.get()).has_value());
  CHECK_FALSE(process_behind(-1).has_value());
}
