// Every rank says who it is:  build/rondo run -n 4 build/examples/01_hello
#include <cstdio>
#include <rondo/rondo.hpp>

int main() {
  // `rondo run` (or torchrun) has put this rank's number, the number of ranks and the place to meet into the
  // environment; from_environment joins the others there.
  auto communicator = rondo::Communicator::from_environment();
  if (!communicator) {
    std::fprintf(stderr, "cannot join: %s\n", communicator.error().message.c_str());
    return 1;
  }

  std::printf("Hello from rank %u of %u\n", communicator->rank(), communicator->world());

  // Nobody passes before everybody is here. Whatever can go wrong among ranks comes back as a value.
  if (auto met = communicator->barrier(); !met) {
    std::fprintf(stderr, "barrier: %s\n", met.error().message.c_str());
    return 1;
  }
  return 0;
}
