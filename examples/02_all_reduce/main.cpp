// Averages a gradient over all ranks, the heart of data-parallel training:
//   build/rondo run -n 4 build/examples/02_all_reduce
#include <cstdio>
#include <rondo/rondo.hpp>
#include <vector>

int main() {
  auto communicator = rondo::Communicator::from_environment();
  if (!communicator) {
    std::fprintf(stderr, "cannot join: %s\n", communicator.error().message.c_str());
    return 1;
  }
  const float rank = float(communicator->rank()), world = float(communicator->world());

  // A real trainer computes this from its own part of the batch. Here element i is i * (rank + 1), so that
  // the right average is known: i * (world + 1) / 2.
  std::vector<float> gradient(1000);
  for (size_t i = 0; i < gradient.size(); i++) gradient[i] = float(i) * (rank + 1);

  // In place: each rank's numbers go in, the average of all ranks' comes out, everywhere with the same bits.
  // rondo::Reduction::sum is the default; min, max and prod are there too. A std::span of the vector is
  // enough, and any length is right: no padding, no multiple of anything.
  if (auto done = communicator->all_reduce(std::span(gradient), rondo::Reduction::avg); !done) {
    std::fprintf(stderr, "all_reduce: %s\n", done.error().message.c_str());  // names the rank to blame
    return 1;
  }

  for (size_t i = 0; i < gradient.size(); i++) {
    const float expected = float(i) * (world + 1) / 2;
    if (gradient[i] != expected) {
      std::fprintf(stderr, "element %zu is %g, not %g\n", i, gradient[i], expected);
      return 1;
    }
  }
  std::printf("rank %u: the average gradient of element 999 is %g\n", communicator->rank(), gradient[999]);
  return 0;
}
