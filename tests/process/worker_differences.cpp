#include "worker_differences.hpp"

#include <chrono>
#include <thread>

using namespace rondo;

namespace {

constexpr size_t elements = difference_elements;

Result<void> reduce_in_place(Communicator& comm, std::vector<float>& data, Reduction reduction) {
  return comm.all_reduce(std::span(data), reduction);
}

Result<void> reduce_to(Communicator& comm, std::vector<float>& data, Rank root) {
  return comm.reduce(std::span(data), std::span(data), Reduction::sum, root);
}
Result<void> gather_to(Communicator& comm, std::vector<float>& data, Rank root) {
  std::vector<float> all(comm.rank() == root ? data.size() * comm.world() : 0);
  return comm.gather(std::span(data), std::span(all), root);
}
Result<void> scatter_from(Communicator& comm, std::vector<float>& data, Rank root) {
  const std::vector<float> all(comm.rank() == root ? data.size() * comm.world() : 0);
  return comm.scatter(std::span(all), std::span(data), root);
}

// Ten elements to each rank; the next one after this gets `more` than it expects.
Result<void> exchange(Communicator& comm, DataType type, uint64_t tag = 0, size_t more = 0) {
  const std::vector<size_t> received(comm.world(), 10);
  std::vector<size_t> sent = received;
  sent[(comm.rank() + 1) % comm.world()] += more;
  const std::vector<double> input(10 * comm.world() + more);
  std::vector<double> output(10 * comm.world());
  return comm.all_to_all_v(input.data(), sent, output.data(), received, type, {.tag = tag});
}

// A rank that has no part in it comes late.
Result<void> exchange_without(Communicator& comm, Rank late, size_t more) {
  if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return exchange(comm, DataType::f32, 0, more);
}

template <class T>
Result<void> without_value(const Result<T>& result) {
  return result ? Result<void>() : result.error();
}

}  // namespace

const std::vector<Difference>& differences() {
  using Data = std::vector<float>;
  static const std::vector<Difference> all{
      {"operation",
       [](Communicator& comm, bool odd, Data& data) {
         return odd ? comm.broadcast(std::span(data).first(elements), 0)
                    : comm.all_reduce(std::span(data).first(elements));
       }},
      {"type",
       [](Communicator& comm, bool odd, Data& data) {
         auto* integers = reinterpret_cast<int32_t*>(data.data());
         return odd ? comm.all_reduce(std::span(integers, elements))
                    : comm.all_reduce(std::span(data).first(elements));
       }},
      {"reduction",
       [](Communicator& comm, bool odd, Data& data) {
         return reduce_in_place(comm, data, odd ? Reduction::max : Reduction::sum);
       }},
      {"count",
       [](Communicator& comm, bool odd, Data& data) {
         return comm.all_reduce(std::span(data).first(odd ? elements - 1 : elements));
       }},
      {"root", [](Communicator& comm, bool odd,
                  Data& data) { return comm.broadcast(std::span(data).first(elements), odd ? 1 : 0); }},
      {"root-of-nothing", [](Communicator& comm, bool odd,
                             Data& data) { return comm.broadcast(std::span(data).first(0), odd ? 1 : 0); }},
      // In these some ranks, or all, only send, and end the call.
      {"root-of-a-reduce",
       [](Communicator& comm, bool odd, Data& data) { return reduce_to(comm, data, odd ? 1 : 0); }},
      {"root-of-a-gather",
       [](Communicator& comm, bool odd, Data& data) { return gather_to(comm, data, odd ? 1 : 0); }},
      {"root-of-a-scatter",
       [](Communicator& comm, bool odd, Data& data) { return scatter_from(comm, data, odd ? 1 : 0); }},
      {"gather-or-scatter",
       [](Communicator& comm, bool odd, Data& data) {
         return odd ? scatter_from(comm, data, comm.rank()) : gather_to(comm, data, 0);
       }},
      {"scatter-or-reduce",
       [](Communicator& comm, bool odd, Data& data) {
         return odd ? reduce_to(comm, data, 1) : scatter_from(comm, data, 0);
       }},
      {"weighted-reduction",
       [](Communicator& comm, bool odd, Data& data) {
         const Reduction reduction = odd ? Reduction::premul_sum : Reduction::weighted_avg;
         return comm.all_reduce(std::span(data).first(elements), reduction, {.weight = 2});
       }},
      {"weights",  // their headers differ in length too
       [](Communicator& comm, bool odd, Data& data) {
         return reduce_in_place(comm, data, odd ? Reduction::sum : Reduction::premul_sum);
       }},
      {"reproducible",
       [](Communicator& comm, bool odd, Data& data) {
         return comm.all_reduce(std::span(data).first(elements), Reduction::sum,
                                {.algorithm = "direct", .reproducible = odd});
       }},
      {"algorithm",
       [](Communicator& comm, bool odd, Data& data) {
         return comm.all_reduce(std::span(data).first(elements), Reduction::sum,
                                {.algorithm = odd ? "ring" : "direct"});
       }},
      {"tag",
       [](Communicator& comm, bool odd, Data& data) {
         return comm.all_reduce(std::span(data).first(elements), Reduction::sum, {.tag = odd ? 77u : 66u});
       }},
      {"split",
       [](Communicator& comm, bool odd, Data& data) {
         return odd ? without_value(comm.split(0)) : comm.all_reduce(std::span(data).first(elements));
       }},
      {"duplicate",
       [](Communicator& comm, bool odd, Data&) {
         return odd ? without_value(comm.duplicate()) : without_value(comm.split(0));
       }},
      {"grow",
       [](Communicator& comm, bool odd, Data&) {
         return odd ? without_value(comm.grow(1, "unix:@rondo-test-nobody")) : comm.barrier();
       }},
      {"order",
       [](Communicator& comm, bool odd, Data& data) {
         const auto one = [&] { return comm.broadcast(std::span(data).first(elements), 0); };
         const auto two = [&] { return comm.all_reduce(std::span(data).first(elements)); };
         if (auto done = odd ? one() : two(); !done) return done;
         return odd ? two() : one();
       }},
      {"exchange-type", [](Communicator& comm, bool odd,
                           Data&) { return exchange(comm, odd ? DataType::f64 : DataType::f32); }},
      {"exchange-tag",
       [](Communicator& comm, bool odd, Data&) { return exchange(comm, DataType::f32, odd ? 77 : 66); }},
      {"exchange-for-barrier", [](Communicator& comm, bool odd,
                                  Data&) { return odd ? exchange(comm, DataType::f32) : comm.barrier(); }},
      {"barrier-for-exchange", [](Communicator& comm, bool odd,
                                  Data&) { return odd ? comm.barrier() : exchange(comm, DataType::f32); }},
      {"exchange-for-reduce",
       [](Communicator& comm, bool odd, Data& data) {
         return odd ? exchange(comm, DataType::f32) : comm.all_reduce(std::span(data));
       }},
      {"reduce-for-exchange",
       [](Communicator& comm, bool odd, Data& data) {
         return odd ? comm.all_reduce(std::span(data)) : exchange(comm, DataType::f32);
       }},
      {"exchange-count",
       [](Communicator& comm, bool odd, Data&) { return exchange(comm, DataType::f32, 0, odd ? 1 : 0); }},
      {"late-exchange-count",
       [](Communicator& comm, bool odd, Data&) { return exchange_without(comm, 0, odd ? 1 : 0); }},
  };
  return all;
}
