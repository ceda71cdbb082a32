#include "state.hpp"

#include <algorithm>
#include <span>

#include "digest.hpp"

namespace trainer {
namespace {

std::string digest_of(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return sha256_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

State::Packed State::pack() const {
  Packed packed;
  for (const auto part : {parameters.span(), adamw.m(), adamw.v()})
    packed.values.insert(packed.values.end(), part.begin(), part.end());
  packed.line = {double(last.step), last.loss, last.tokens_per_s, last.communication_share};
  return packed;
}

void State::unpack(const Packed& packed, uint64_t steps_done) {
  const std::span<const float> values(packed.values);
  const size_t size = parameters.span().size();
  std::ranges::copy(values.first(size), parameters.span().begin());
  adamw.restore(steps_done, values.subspan(size, size), values.subspan(2 * size, size));
  steps = steps_done;
  last = {uint64_t(packed.line[0]), packed.line[1], packed.line[2], packed.line[3]};
}

std::string State::digest() const {
  return digest_of(parameters.span()) + digest_of(adamw.m()) + digest_of(adamw.v());
}

}  // namespace trainer
