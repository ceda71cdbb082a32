// The main function of a tier that has none of its own.
#include "tests/main.hpp"

int main(int argc, char** argv) { return rondo::tests::run_cases(argc, argv); }
