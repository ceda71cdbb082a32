// How every tier runs its test cases, and the record of what became of each.
//
// With TEST_LOG=FILE a line is written when a case starts and another when it ends, so that
// tools/run_tests.py can count, and can name the case in which a tier crashed or hung:
//   start NAME | passed NAME | failed NAME | skipped NAME: REASON
// TEST_SKIP_SLOW=1 leaves out the test suites with "slow" in their name.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/main.hpp"
#include "tests/skip.hpp"

namespace {

std::string reason_to_skip;  // of the running case; only the thread that runs the cases touches it

class TestLog : public doctest::IReporter {
 public:
  explicit TestLog(const doctest::ContextOptions&) {
    const char* path = std::getenv("TEST_LOG");
    if (path != nullptr && *path != '\0') file_ = std::fopen(path, "a");
  }
  ~TestLog() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  TestLog(const TestLog&) = delete;
  TestLog& operator=(const TestLog&) = delete;

  void test_case_start(const doctest::TestCaseData& test) override {
    name_ = test.m_name;
    reason_to_skip.clear();
    write("start " + name_);
  }
  void test_case_end(const doctest::CurrentTestCaseStats& end) override {
    if (end.failure_flags != 0)
      write("failed " + name_);
    else if (!reason_to_skip.empty())
      write("skipped " + name_ + ": " + reason_to_skip);
    else
      write("passed " + name_);
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  void write(const std::string& line) {
    if (file_ == nullptr) return;
    std::fprintf(file_, "%s\n", line.c_str());
    std::fflush(file_);
  }

  std::FILE* file_ = nullptr;
  std::string name_;
};

REGISTER_LISTENER("log", 1, TestLog);

}  // namespace

namespace rondo::tests {

void skipped(const std::string& reason) {
  reason_to_skip = reason;
  std::printf("SKIPPED: %s\n", reason.c_str());
}

int run_cases(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what a tier that is killed has printed is not lost
  doctest::Context context;
  const char* skip_slow = std::getenv("TEST_SKIP_SLOW");
  if (skip_slow != nullptr && *skip_slow == '1') context.addFilter("test-suite-exclude", "*slow*");
  context.applyCommandLine(argc, argv);
  return context.run();
}

}  // namespace rondo::tests
