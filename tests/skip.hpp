// A test that cannot be done on this machine says so, and why: the reason is shown and the case counts as
// skipped, never as passed.
//
//   TEST_CASE("verbs: ...") {
//     if (!has_rdma_device()) SKIP_TEST("no RDMA device");
#pragma once
#include <string>

namespace rondo::tests {

/// Marks the running test case as skipped. Only on the thread that runs the case.
void skipped(const std::string& reason);

}  // namespace rondo::tests

#define SKIP_TEST(reason)            \
  do {                               \
    ::rondo::tests::skipped(reason); \
    return;                          \
  } while (false)
