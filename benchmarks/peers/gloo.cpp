// Gloo's ring all-reduce over TCP, ranks started by `rondo run`: gloo SIZES FOLDER
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include "measure.hpp"

int main(int, char** argv) {
  const int rank = std::atoi(std::getenv("RANK")), world = std::atoi(std::getenv("WORLD_SIZE"));
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[2]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, world);
  context->connectFullMesh(store, device);
  const auto options = [&](uint32_t tag) {
    gloo::AllreduceOptions result(context);
    result.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    result.setTag(tag);
    return result;
  };
  peers::measure(
      rank, world, peers::sizes_of(argv[1]),
      [&](float* data, size_t count) {
        auto all_reduce = options(1);
        all_reduce.setReduceFunction(
            [](void* x, const void* y, const void* z, size_t n) { gloo::sum<float>(x, y, z, n); });
        all_reduce.setOutput(data, count);
        gloo::allreduce(all_reduce);
      },
      [&](std::vector<double>& times) {
        auto all_reduce = options(2);
        all_reduce.setReduceFunction(
            [](void* x, const void* y, const void* z, size_t n) { gloo::max<double>(x, y, z, n); });
        all_reduce.setOutput(times.data(), times.size());
        gloo::allreduce(all_reduce);
      });
  std::fflush(stdout);
  _exit(0);  // its teardown logs a reset for every pair
}
