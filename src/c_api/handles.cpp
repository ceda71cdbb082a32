// Communicators, works and memory: everything in rondo.h but the operations.
#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <utility>

#include "c_api/boundary.hpp"

using namespace rondo;
using c_api::guarded;
using c_api::invalid;

namespace {

using Milliseconds = std::chrono::milliseconds;

// A number that may be left open as -1.
Result<std::optional<uint32_t>> number(const char* function, const char* name, int64_t given) {
  if (given == -1) return std::optional<uint32_t>();
  if (given >= 0 && given <= std::numeric_limits<uint32_t>::max()) return std::optional(uint32_t(given));
  return invalid(function,
                 fmt::format("{} is {}; it must fit into 32 bits, or be -1 for not set", name, given));
}

Result<std::optional<Milliseconds>> duration(const char* function, const char* name, int64_t given) {
  if (given < 0) return invalid(function, fmt::format("{} is {}; it must not be negative", name, given));
  return given == 0 ? std::optional<Milliseconds>() : std::optional(Milliseconds(given));
}

void take_texts(const rondo_options& given, Options& options) {
  const std::pair<const char*, std::string*> texts[]{{given.root, &options.root},
                                                     {given.secret, &options.secret},
                                                     {given.interfaces, &options.interfaces},
                                                     {given.ports, &options.ports},
                                                     {given.transport, &options.transport},
                                                     {given.algorithm, &options.algorithm},
                                                     {given.tuning, &options.tuning},
                                                     {given.advertise, &options.advertise},
                                                     {given.listen, &options.listen},
                                                     {given.fault, &options.fault}};
  for (const auto& [from, to] : texts)
    if (from != nullptr) *to = from;
}

// The first of these that is an error.
template <class... Checked>
std::optional<Error> first_error(const Checked&... checked) {
  std::optional<Error> error;
  ((error || checked ? void() : void(error = checked.error())), ...);
  return error;
}

Result<Options> options_of(const char* function, const rondo_options* given) {
  Options options;
  if (given == nullptr) return options;
  if (given->size != sizeof(rondo_options))
    return invalid(function,
                   fmt::format("the options have size {}; begin with RONDO_OPTIONS_INIT", given->size));
  take_texts(*given, options);
  const auto reproducible = c_api::flag(function, "reproducible", given->reproducible);
  const auto tls = c_api::flag(function, "tls", given->tls);
  const auto state_signal = c_api::flag(function, "state_signal", given->state_signal);
  const auto rank = number(function, "rank", given->rank);
  const auto world = number(function, "world", given->world);
  const auto node = number(function, "node", given->node);
  const auto init = duration(function, "init_timeout_ms", given->init_timeout_ms);
  const auto timeout = duration(function, "timeout_ms", given->timeout_ms);
  if (auto error = first_error(reproducible, tls, state_signal, rank, world, node, init, timeout))
    return *error;
  if (given->heartbeat_ms < -1)
    return invalid(function,
                   fmt::format("heartbeat_ms is {}; it must be -1 for not set, 0 for never, or more",
                               given->heartbeat_ms));
  options.reproducible = *reproducible, options.tls = *tls, options.state_signal = *state_signal;
  options.rank = *rank, options.world = *world, options.node = *node;
  options.init_timeout = *init, options.timeout = *timeout;
  if (given->heartbeat_ms >= 0) options.heartbeat = Milliseconds(given->heartbeat_ms);
  return options;
}

using Join = Result<Communicator> (*)(const Options&);
rondo_status join(const char* function, Join how, const rondo_options* given, rondo_comm** comm) {
  if (comm != nullptr) *comm = nullptr;
  return guarded([&]() -> Result<void> {
    if (comm == nullptr) return invalid(function, "the pointer to the communicator is NULL");
    const auto options = options_of(function, given);
    if (!options) return options.error();
    auto joined = how(*options);
    if (!joined) return joined.error();
    *comm = new rondo_comm{std::move(*joined)};
    return {};
  });
}

// A communicator that comes of another.
template <class Make>
rondo_status derive(const char* function, rondo_comm* comm, const rondo_call_options* options,
                    rondo_comm** made, Make make) {
  if (made != nullptr) *made = nullptr;
  return guarded([&]() -> Result<void> {
    if (comm == nullptr || made == nullptr) return invalid(function, "a communicator is NULL");
    const auto call = c_api::call_options(function, options);
    if (!call) return call.error();
    auto derived = make(comm->communicator, *call);
    if (!derived) return derived.error();
    *made = new rondo_comm{std::move(*derived)};
    return {};
  });
}

// Before the memory that a caller gets lies one page with the Memory itself, so that its address is enough to free it.
size_t page() { return size_t(::sysconf(_SC_PAGESIZE)); }

}  // namespace

rondo_status rondo_comm_from_environment(const rondo_options* options, rondo_comm** comm) {
  return join("rondo_comm_from_environment", Communicator::from_environment, options, comm);
}

rondo_status rondo_comm_create(const rondo_options* options, rondo_comm** comm) {
  return join("rondo_comm_create", Communicator::create, options, comm);
}

void rondo_comm_destroy(rondo_comm* comm) { delete comm; }

uint32_t rondo_comm_rank(const rondo_comm* comm) { return comm == nullptr ? 0 : comm->communicator.rank(); }
uint32_t rondo_comm_world(const rondo_comm* comm) { return comm == nullptr ? 0 : comm->communicator.world(); }

// Both names are literals, so they end with a zero.
const char* rondo_comm_transport(const rondo_comm* comm) {
  return comm == nullptr ? "" : comm->communicator.transport().data();
}
const char* rondo_comm_last_algorithm(const rondo_comm* comm) {
  return comm == nullptr ? "" : comm->communicator.last_algorithm().data();
}

rondo_status rondo_comm_counters(const rondo_comm* comm, rondo_counters* counters) {
  const char* const function = "rondo_comm_counters";
  return guarded([&]() -> Result<void> {
    if (comm == nullptr) return invalid(function, "the communicator is NULL");
    if (counters == nullptr || counters->size != sizeof(rondo_counters))
      return invalid(function, "the counters are NULL or have a wrong size; begin with RONDO_COUNTERS_INIT");
    const Counters now = comm->communicator.counters();
    counters->operations = now.operations;
    counters->payload_bytes_sent = now.payload_bytes_sent;
    counters->header_bytes_sent = now.header_bytes_sent;
    return {};
  });
}

void rondo_comm_abort(rondo_comm* comm) {
  if (comm != nullptr) comm->communicator.abort();
}

rondo_status rondo_comm_split(rondo_comm* comm, int64_t color, int64_t key, const rondo_call_options* options,
                              rondo_comm** part) {
  const char* const function = "rondo_comm_split";
  if (part != nullptr) *part = nullptr;
  return guarded([&]() -> Result<void> {
    if (comm == nullptr || part == nullptr) return invalid(function, "a communicator is NULL");
    const auto chosen = number(function, "the color", color);
    if (!chosen) return chosen.error();
    const auto call = c_api::call_options(function, options);
    if (!call) return call.error();
    auto made = comm->communicator.split(*chosen, key, *call);
    if (!made) return made.error();
    if (*made) *part = new rondo_comm{std::move(**made)};
    return {};
  });
}

rondo_status rondo_comm_duplicate(rondo_comm* comm, const rondo_call_options* options, rondo_comm** copy) {
  return derive("rondo_comm_duplicate", comm, options, copy,
                [](Communicator& from, const CallOptions& call) { return from.duplicate(call); });
}

rondo_status rondo_comm_shrink(rondo_comm* comm, const rondo_call_options* options, rondo_comm** rest) {
  return derive("rondo_comm_shrink", comm, options, rest,
                [](Communicator& from, const CallOptions& call) { return from.shrink(call); });
}

rondo_status rondo_comm_grow(rondo_comm* comm, uint32_t newcomers, const char* root,
                             const rondo_call_options* options, rondo_comm** grown) {
  return derive("rondo_comm_grow", comm, options, grown, [&](Communicator& from, const CallOptions& call) {
    return from.grow(newcomers, root == nullptr ? "" : root, call);
  });
}

int64_t rondo_comm_parent_rank(const rondo_comm* comm, uint32_t rank) {
  if (comm == nullptr) return -1;
  const auto parents = comm->communicator.parent_ranks();
  return rank < parents.size() ? int64_t(parents[rank]) : -1;
}

rondo_extent rondo_shard(uint64_t count, uint32_t world, uint32_t rank) {
  if (rank >= world) return {0, 0};
  const Extent extent = shard(count, world, rank);
  return {extent.first, extent.count};
}

rondo_status rondo_allocate(size_t bytes, void** memory) {
  if (memory != nullptr) *memory = nullptr;
  return guarded([&]() -> Result<void> {
    if (memory == nullptr) return invalid("rondo_allocate", "the pointer to the memory is NULL");
    if (bytes == 0) return {};
    auto allocated = Memory::allocate(bytes > SIZE_MAX - page() ? bytes : page() + bytes);
    if (!allocated) return allocated.error();
    std::byte* const base = allocated->data();
    *memory = base + page();
    new (base) Memory(std::move(*allocated));
    return {};
  });
}

void rondo_free(void* memory) {
  if (memory == nullptr) return;
  const Memory last = std::move(*reinterpret_cast<Memory*>(static_cast<std::byte*>(memory) - page()));
}

rondo_status rondo_work_wait(rondo_work* work) {
  return guarded([&]() -> Result<void> {
    if (work == nullptr) return invalid("rondo_work_wait", "the work is NULL");
    return work->work->wait();
  });
}

rondo_status rondo_work_wait_for(rondo_work* work, int64_t limit_ms) {
  const char* const function = "rondo_work_wait_for";
  return guarded([&]() -> Result<void> {
    if (work == nullptr) return invalid(function, "the work is NULL");
    if (limit_ms < 0)
      return invalid(function, fmt::format("the limit is {} ms; it must not be negative", limit_ms));
    return work->work->wait(Milliseconds(limit_ms));
  });
}

int rondo_work_test(const rondo_work* work) { return work == nullptr || work->work->test() ? 1 : 0; }

rondo_status rondo_work_on_end(rondo_work* work, void (*callback)(void* context), void* context) {
  return guarded([&]() -> Result<void> {
    if (work == nullptr || callback == nullptr)
      return invalid("rondo_work_on_end", "the work or the callback is NULL");
    work->work->on_end([callback, context] { callback(context); });
    return {};
  });
}

void rondo_work_destroy(rondo_work* work) { delete work; }
