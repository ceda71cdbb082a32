#include "state.hpp"

#include <algorithm>

#include "digest.hpp"

namespace trainer {
namespace {

std::string digest_of(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return sha256_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

std::vector<float> State::pack() const {
  std::vector<float> packed;
  for (const auto part : {parameters.span(), adamw.m(), adamw.v()})
    packed.insert(packed.end(), part.begin(), part.end());
  return packed;
}

void State::unpack(std::span<const float> packed, uint64_t steps_done) {
  const size_t size = parameters.span().size();
  std::ranges::copy(packed.first(size), parameters.span().begin());
  adamw.restore(steps_done, packed.subspan(size, size), packed.subspan(2 * size, size));
  steps = steps_done;
}

std::string State::digest() const {
  return digest_of(parameters.span()) + digest_of(adamw.m()) + digest_of(adamw.v());
}

}  // namespace trainer
