// The operations that block: C arguments become those of the untyped C++ forms.
#include "c_api/boundary.hpp"

using namespace rondo;
using c_api::block;
using c_api::counts_of;
using c_api::tensors_of;
using c_api::Terms;

rondo_status rondo_all_reduce(rondo_comm* comm, const void* input, void* output, size_t count,
                              rondo_type type, rondo_reduction reduction, const rondo_call_options* options) {
  return block("rondo_all_reduce", comm, type, reduction, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.all_reduce(input, output, count, terms.type, terms.reduction,
                                                terms.options);
               });
}

rondo_status rondo_all_reduce_group(rondo_comm* comm, const rondo_tensor* tensors, size_t tensor_count,
                                    rondo_type type, rondo_reduction reduction,
                                    const rondo_call_options* options) {
  const char* const function = "rondo_all_reduce_group";
  return block(function, comm, type, reduction, options,
               [&](Communicator& communicator, const Terms& terms) -> Result<void> {
                 const auto all = tensors_of(function, tensors, tensor_count);
                 if (!all) return all.error();
                 return communicator.all_reduce_group(*all, terms.type, terms.reduction, terms.options);
               });
}

rondo_status rondo_reduce_scatter(rondo_comm* comm, const void* input, void* output, size_t count,
                                  rondo_type type, rondo_reduction reduction,
                                  const rondo_call_options* options) {
  return block("rondo_reduce_scatter", comm, type, reduction, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.reduce_scatter(input, output, count, terms.type, terms.reduction,
                                                    terms.options);
               });
}

rondo_status rondo_reduce_scatter_v(rondo_comm* comm, const void* input, void* output, const size_t* counts,
                                    rondo_type type, rondo_reduction reduction,
                                    const rondo_call_options* options) {
  const char* const function = "rondo_reduce_scatter_v";
  return block(function, comm, type, reduction, options,
               [&](Communicator& communicator, const Terms& terms) -> Result<void> {
                 const auto each = counts_of(function, "counts", counts, communicator);
                 if (!each) return each.error();
                 return communicator.reduce_scatter_v(input, output, *each, terms.type, terms.reduction,
                                                      terms.options);
               });
}

rondo_status rondo_reduce(rondo_comm* comm, const void* input, void* output, size_t count, rondo_type type,
                          rondo_reduction reduction, uint32_t root, const rondo_call_options* options) {
  return block(
      "rondo_reduce", comm, type, reduction, options, [&](Communicator& communicator, const Terms& terms) {
        return communicator.reduce(input, output, count, terms.type, terms.reduction, root, terms.options);
      });
}

rondo_status rondo_all_gather(rondo_comm* comm, const void* input, void* output, size_t count,
                              rondo_type type, const rondo_call_options* options) {
  return block("rondo_all_gather", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.all_gather(input, output, count, terms.type, terms.options);
               });
}

rondo_status rondo_all_gather_v(rondo_comm* comm, const void* input, void* output, const size_t* counts,
                                rondo_type type, const rondo_call_options* options) {
  const char* const function = "rondo_all_gather_v";
  return block(function, comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) -> Result<void> {
                 const auto each = counts_of(function, "counts", counts, communicator);
                 if (!each) return each.error();
                 return communicator.all_gather_v(input, output, *each, terms.type, terms.options);
               });
}

rondo_status rondo_broadcast(rondo_comm* comm, void* data, size_t count, rondo_type type, uint32_t root,
                             const rondo_call_options* options) {
  return block("rondo_broadcast", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.broadcast(data, count, terms.type, root, terms.options);
               });
}

rondo_status rondo_gather(rondo_comm* comm, const void* input, void* output, size_t count, rondo_type type,
                          uint32_t root, const rondo_call_options* options) {
  return block("rondo_gather", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.gather(input, output, count, terms.type, root, terms.options);
               });
}

rondo_status rondo_scatter(rondo_comm* comm, const void* input, void* output, size_t count, rondo_type type,
                           uint32_t root, const rondo_call_options* options) {
  return block("rondo_scatter", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.scatter(input, output, count, terms.type, root, terms.options);
               });
}

rondo_status rondo_all_to_all(rondo_comm* comm, const void* input, void* output, size_t count,
                              rondo_type type, const rondo_call_options* options) {
  return block("rondo_all_to_all", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.all_to_all(input, output, count, terms.type, terms.options);
               });
}

rondo_status rondo_all_to_all_v(rondo_comm* comm, const void* input, const size_t* send_counts, void* output,
                                const size_t* recv_counts, rondo_type type,
                                const rondo_call_options* options) {
  const char* const function = "rondo_all_to_all_v";
  return block(function, comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) -> Result<void> {
                 const auto sends = counts_of(function, "send_counts", send_counts, communicator);
                 if (!sends) return sends.error();
                 const auto recvs = counts_of(function, "recv_counts", recv_counts, communicator);
                 if (!recvs) return recvs.error();
                 return communicator.all_to_all_v(input, *sends, output, *recvs, terms.type, terms.options);
               });
}

rondo_status rondo_send(rondo_comm* comm, const void* data, size_t count, rondo_type type, uint32_t to,
                        const rondo_call_options* options) {
  return block("rondo_send", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.send(data, count, terms.type, to, terms.options);
               });
}

rondo_status rondo_recv(rondo_comm* comm, void* data, size_t count, rondo_type type, uint32_t from,
                        const rondo_call_options* options) {
  return block("rondo_recv", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.recv(data, count, terms.type, from, terms.options);
               });
}

rondo_status rondo_send_recv(rondo_comm* comm, const void* input, size_t send_count, uint32_t to,
                             void* output, size_t recv_count, uint32_t from, rondo_type type,
                             const rondo_call_options* options) {
  return block("rondo_send_recv", comm, type, RONDO_SUM, options,
               [&](Communicator& communicator, const Terms& terms) {
                 return communicator.send_recv(input, send_count, to, output, recv_count, from, terms.type,
                                               terms.options);
               });
}

rondo_status rondo_barrier(rondo_comm* comm, const rondo_call_options* options) {
  return block(
      "rondo_barrier", comm, RONDO_U8, RONDO_SUM, options,
      [&](Communicator& communicator, const Terms& terms) { return communicator.barrier(terms.options); });
}
