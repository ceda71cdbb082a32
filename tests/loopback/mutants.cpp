// Whether it would be noticed if a rule of the shared-memory links were broken. Each mutant is a program of its
// own (mutant.cpp); those whose orderings are too weak say something only under the thread sanitizer.
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
Outcome run(const std::string& program) {
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

TEST_CASE("mutants: wrong bytes show when sources are given back before their readers have released them") {
  const std::string folder = MUTANT_FOLDER;
  const Outcome right = run(folder + "/mutant_0"), early = run(folder + "/mutant_3");
  CAPTURE(right.text);
  CAPTURE(early.text);
  CHECK(right.code == 0);
  CHECK(right.text.find("0 wrong bytes, 5120000 referred to") != std::string::npos);
  CHECK(early.code != 0);
}

TEST_CASE("mutants: the thread sanitizer reports a publishing store or a releasing store that is relaxed") {
#ifdef WITH_THREAD_SANITIZER
  const std::string folder = MUTANT_FOLDER;
  for (const char* mutant : {"/mutant_1", "/mutant_2"}) {
    const Outcome weak = run(folder + mutant);
    CAPTURE(mutant);
    CAPTURE(weak.text);
    CHECK(weak.code != 0);
    CHECK(weak.text.find("ThreadSanitizer: data race") != std::string::npos);
  }
#else
  SKIP_TEST("this is not a build with the thread sanitizer");
#endif
}
