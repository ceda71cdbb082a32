// Whether the thread sanitizer would tell if an ordering of the shared-memory links were too weak. Each mutant
// is a program of its own (mutant.cpp); where there is no thread sanitizer there are none.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "../skip.hpp"

namespace {

struct Outcome {
  int code;
  std::string text;
};

// Reports go to standard error; this test's own options for the sanitizer must not make it silent.
[[maybe_unused]] Outcome run(const std::string& program) {
  std::FILE* pipe = ::popen(("TSAN_OPTIONS=halt_on_error=1 " + program + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome{};
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace

#ifdef MUTANT_FOLDER
TEST_CASE("mutants: the thread sanitizer reports a publishing store or a releasing store that is relaxed") {
  const std::string folder = MUTANT_FOLDER;
  const Outcome right = run(folder + "/mutant_0");
  CAPTURE(right.text);
  CHECK(right.code == 0);
  for (const char* mutant : {"/mutant_1", "/mutant_2"}) {
    const Outcome weak = run(folder + mutant);
    CAPTURE(mutant);
    CAPTURE(weak.text);
    CHECK(weak.code != 0);
    CHECK(weak.text.find("ThreadSanitizer: data race") != std::string::npos);
  }
}
#else
TEST_CASE("mutants: the thread sanitizer reports a publishing store or a releasing store that is relaxed") {
  SKIP_TEST("this is not a build with the thread sanitizer");
}
#endif
