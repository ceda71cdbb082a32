// MPI_Allreduce: mpi SIZES
#include <mpi.h>

#include "measure.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, world;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  peers::measure(
      rank, world, peers::sizes_of(argv[1]),
      [](float* data, size_t count) {
        MPI_Allreduce(MPI_IN_PLACE, data, int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      },
      [](std::vector<double>& times) {
        MPI_Allreduce(MPI_IN_PLACE, times.data(), int(times.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      });
  MPI_Finalize();
}
