#include "c_api/boundary.hpp"

#include <fmt/format.h>

namespace rondo::c_api {
namespace {

// The last failure of a thread; only that thread sees it.
struct LastError {
  std::string text;
  const char* message = "";  // of `text`, or a literal where there was no memory for it
  int64_t peer = -1;
};
thread_local LastError last_error;

template <class Enum>
constexpr bool matches(Enum value, int32_t code) {
  return int32_t(value) == code;
}
constexpr rondo_status status_of(ErrorCode code) { return rondo_status(code) + 1; }

static_assert(status_of(ErrorCode::invalid_argument) == RONDO_INVALID_ARGUMENT &&
              status_of(ErrorCode::timeout) == RONDO_TIMEOUT &&
              status_of(ErrorCode::peer_lost) == RONDO_PEER_LOST &&
              status_of(ErrorCode::mismatch) == RONDO_MISMATCH &&
              status_of(ErrorCode::refused) == RONDO_REFUSED &&
              status_of(ErrorCode::aborted) == RONDO_ABORTED && status_of(ErrorCode::system) == RONDO_SYSTEM);
static_assert(matches(DataType::f64, RONDO_F64) && matches(DataType::f32, RONDO_F32) &&
              matches(DataType::f16, RONDO_F16) && matches(DataType::bf16, RONDO_BF16) &&
              matches(DataType::f8e4m3, RONDO_F8E4M3) && matches(DataType::f8e5m2, RONDO_F8E5M2) &&
              matches(DataType::i8, RONDO_I8) && matches(DataType::u8, RONDO_U8) &&
              matches(DataType::i16, RONDO_I16) && matches(DataType::u16, RONDO_U16) &&
              matches(DataType::i32, RONDO_I32) && matches(DataType::u32, RONDO_U32) &&
              matches(DataType::i64, RONDO_I64) && matches(DataType::u64, RONDO_U64));
static_assert(matches(Reduction::sum, RONDO_SUM) && matches(Reduction::prod, RONDO_PROD) &&
              matches(Reduction::min, RONDO_MIN) && matches(Reduction::max, RONDO_MAX) &&
              matches(Reduction::avg, RONDO_AVG) && matches(Reduction::bit_and, RONDO_BIT_AND) &&
              matches(Reduction::bit_or, RONDO_BIT_OR) && matches(Reduction::bit_xor, RONDO_BIT_XOR) &&
              matches(Reduction::premul_sum, RONDO_PREMUL_SUM) &&
              matches(Reduction::weighted_avg, RONDO_WEIGHTED_AVG) &&
              matches(Reduction::min_num, RONDO_MIN_NUM) && matches(Reduction::max_num, RONDO_MAX_NUM));
// A new value must be added to rondo.h too.
static_assert(all_data_types.size() == RONDO_U64 + 1 && all_reductions.size() == RONDO_MAX_NUM + 1);

// Programs that were compiled with this header rely on these.
static_assert(sizeof(rondo_call_options) == 40 && sizeof(rondo_options) == 144 &&
              sizeof(rondo_counters) == 32);
}  // namespace

Error invalid(const char* function, const std::string& what) {
  return {ErrorCode::invalid_argument, fmt::format("{}: {}", function, what)};
}

rondo_status remember(const Error& error) noexcept {
  try {
    last_error.text = error.message;
    last_error.message = last_error.text.c_str();
  } catch (...) {
    last_error.message = "out of memory, also for the message";
  }
  last_error.peer = error.peer ? int64_t(*error.peer) : -1;
  return status_of(error.code);
}

rondo_status remember_system(const char* text) noexcept {
  last_error.message = text;
  last_error.peer = -1;
  return RONDO_SYSTEM;
}

Result<std::optional<bool>> flag(const char* function, const char* name, int32_t given) {
  if (given < -1 || given > 1)
    return invalid(function, fmt::format("{} is {}; it must be -1, 0 or 1", name, given));
  return given < 0 ? std::optional<bool>() : std::optional(given == 1);
}

Result<CallOptions> call_options(const char* function, const rondo_call_options* given) {
  CallOptions options;
  if (given == nullptr) return options;
  if (given->size != sizeof(rondo_call_options))
    return invalid(function,
                   fmt::format("the options have size {}; begin with RONDO_CALL_OPTIONS_INIT", given->size));
  if (given->timeout_ms < 0)
    return invalid(function, fmt::format("the timeout is {} ms; it must not be negative", given->timeout_ms));
  const auto reproducible = flag(function, "reproducible", given->reproducible);
  if (!reproducible) return reproducible.error();
  if (given->timeout_ms > 0) options.timeout = std::chrono::milliseconds(given->timeout_ms);
  options.reproducible = *reproducible;
  options.weight = given->weight;
  options.tag = given->tag;
  if (given->algorithm != nullptr) options.algorithm = given->algorithm;
  return options;
}

Result<Terms> terms(const char* function, rondo_type type, rondo_reduction reduction,
                    const rondo_call_options* options) {
  if (type < 0 || size_t(type) >= all_data_types.size())
    return invalid(function, fmt::format("there is no type {}", type));
  if (reduction < 0 || size_t(reduction) >= all_reductions.size())
    return invalid(function, fmt::format("there is no reduction {}", reduction));
  auto call = call_options(function, options);
  if (!call) return call.error();
  return Terms{DataType(type), Reduction(reduction), *call};
}

Result<std::span<const size_t>> counts_of(const char* function, const char* name, const size_t* counts,
                                          const Communicator& communicator) {
  if (counts == nullptr) return invalid(function, fmt::format("{} is NULL", name));
  const std::span all(counts, communicator.world());
  size_t sum = 0;
  for (const size_t count : all)
    if (__builtin_add_overflow(sum, count, &sum))
      return invalid(function, fmt::format("{} add up to more than an address space holds", name));
  return all;
}

Result<std::vector<Tensor>> tensors_of(const char* function, const rondo_tensor* tensors, size_t count) {
  if (tensors == nullptr && count > 0) return invalid(function, "the tensors are NULL");
  std::vector<Tensor> all;
  for (const rondo_tensor& tensor : std::span(tensors, count))
    all.push_back({tensor.input, tensor.output, tensor.count});
  return all;
}

}  // namespace rondo::c_api

using namespace rondo;

const char* rondo_last_error(void) { return c_api::last_error.message; }
int64_t rondo_last_error_peer(void) { return c_api::last_error.peer; }

const char* rondo_status_name(rondo_status status) {
  if (status == RONDO_OK) return "ok";
  if (status < RONDO_OK || status > RONDO_SYSTEM) return "?";
  return name_of(ErrorCode(status - 1)).data();  // a literal
}

size_t rondo_type_size(rondo_type type) {
  return type < 0 || size_t(type) >= all_data_types.size() ? 0 : size_of(DataType(type));
}
