// What a test program with a main function of its own calls.
#pragma once

namespace rondo::tests {

/// Runs the test cases that the command line selects; returns the exit status.
int run_cases(int argc, char** argv);

}  // namespace rondo::tests
