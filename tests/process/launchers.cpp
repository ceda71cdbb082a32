// rondo bench as the ranks of other launchers, with the real mpirun where it is installed.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "../skip.hpp"
#include "command.hpp"

using namespace rondo::test;

namespace {

bool installed(const std::string& program) {
  return run({"/bin/sh", "-c", "command -v " + program}).code == 0;
}

using Words = std::vector<std::string>;
const Words open_mpi{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n"};
const Words mpich{"mpirun.mpich", "-launcher", "fork", "-n"};
const Words small{RONDO_EXE, "bench", "all_reduce", "-e", "8", "--iterations", "20"};

Words line(Words launcher, const std::string& ranks, const Words& program = small) {
  launcher.push_back(ranks);
  launcher.insert(launcher.end(), program.begin(), program.end());
  return launcher;
}

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// One job of four, and not four jobs of one.
void check_four_ranks(const Ended& ended) {
  CAPTURE(ended.out);
  CAPTURE(ended.err);
  CHECK(ended.code == 0);
  CHECK_FALSE(ended.too_late);
  CHECK(count(ended.out, "4 ranks") == 1);
}

void check_launcher(const Words& launcher) {
  if (!installed(launcher.front())) SKIP_TEST(launcher.front() + " is not installed");
  check_four_ranks(run(line(launcher, "4"), {}, 60));
  // A shell between the launcher and the rank makes no difference.
  check_four_ranks(
      run(line(launcher, "4", {"/bin/sh", "-c", RONDO_EXE " bench all_reduce -e 8 --iterations 20; exit $?"}),
          {}, 60));
  // Two jobs at once do not meet. (Open MPI's own mpirun fails when two make its directory at once.)
  char place[] = "/tmp/rondo-test-launcher-XXXXXX";
  REQUIRE(::mkdtemp(place) != nullptr);
  {
    Command one(line(launcher, "4")), two(line(launcher, "4"), {std::string("TMPDIR=") + place});
    check_four_ranks(one.wait(60));
    check_four_ranks(two.wait(60));
  }
  std::filesystem::remove_all(place);
}

}  // namespace

TEST_CASE("launchers: the ranks of Open MPI's mpirun are one job") { check_launcher(open_mpi); }
TEST_CASE("launchers: the ranks of MPICH's mpirun are one job") { check_launcher(mpich); }

TEST_CASE("launchers: Slurm's variables, as srun sets them on one machine") {
  const std::string pid = std::to_string(::getpid());
  const std::string script = "for rank in 0 1 2 3; do SLURM_PROCID=$rank " RONDO_EXE
                             " bench all_reduce -e 8 --iterations 20 & pids=\"$pids $!\"; done\n"
                             "for pid in $pids; do wait $pid || exit 1; done";
  check_four_ranks(run({"/bin/sh", "-c", script}, {"SLURM_NTASKS=4", "SLURM_JOB_ID=" + pid, "SLURM_STEP_ID=0",
                                                   "SLURM_STEP_NUM_NODES=1"}));
}

TEST_CASE("launchers: variables left over that hide the launcher's are warned of, and rondo run's are not") {
  const Words mpi{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=3"};
  Words environment = mpi;
  environment.insert(environment.end(), {"RANK=0", "WORLD_SIZE=1"});
  const auto alone = run(small, environment);
  CHECK(alone.code == 0);
  CHECK(count(alone.err, "rondo warning: RANK=0 and WORLD_SIZE=1 count") == 1);
  const auto under_run = run({RONDO_EXE, "run", "-n", "2", "--", MEMBER_EXE, "split"}, mpi);
  CHECK(under_run.code == 0);
  CHECK(under_run.err == "");
}

TEST_CASE("launchers: several machines without a secret end with what to set") {
  const auto ended = run(small, {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1"});
  CHECK(ended.code == 2);
  CHECK(ended.err.find("RONDO_ROOT and RONDO_SECRET not set") != std::string::npos);
  CHECK(ended.seconds < 2);
}

TEST_CASE("launchers: without a secret another user can neither join nor pose as rank 0") {
  if (::geteuid() != 0 || !installed("setpriv")) SKIP_TEST("needs root and setpriv");
  const std::string root = "RONDO_ROOT=unix:@rondo-test-users-" + std::to_string(::getpid());
  const auto rank = [&](const char* number) {
    return Words{"RANK=" + std::string(number), "WORLD_SIZE=2", root, "RONDO_INIT_TIMEOUT=3"};
  };
  Words other_user{"setpriv", "--reuid", "65534", "--clear-groups"};
  other_user.insert(other_user.end(), small.begin(), small.end());
  SUBCASE("joining") {
    Command first(small, rank("0"));
    const auto stranger = run(other_user, rank("1"));
    CHECK(stranger.code == 3);
    CHECK(stranger.err.find("another user") != std::string::npos);
    CHECK(first.wait().code == 4);
  }
  SUBCASE("posing") {
    Command stranger(other_user, rank("0"));
    const auto second = run(small, rank("1"));
    CHECK(second.code == 3);
    CHECK(second.err.find("another user") != std::string::npos);
    CHECK(stranger.wait().code == 4);
  }
}
