// Counter-based random numbers: a value is a pure function of its key, so there is no state to keep, to save
// or to share among ranks, and whoever asks for number `index` of `stream` gets the same bits in any order.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace trainer {

struct Key {
  uint64_t seed, stream, index;
};

/// Streams other than the training steps, which use their own number.
namespace stream {
inline constexpr uint64_t initial_parameters = uint64_t(1) << 40, sample = initial_parameters + 1,
                          generated_text = initial_parameters + 2, generated_images = initial_parameters + 3;
/// The first of as many as there are epochs.
inline constexpr uint64_t epochs = uint64_t(1) << 41;
}  // namespace stream

/// The finaliser of splitmix64: a bijection in which every input bit reaches every output bit.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t random_bits(const Key& key) { return mix(mix(mix(key.seed) + key.stream) + key.index); }

/// 0 .. limit-1: the high half of a 128-bit product, free of the remainder's bias.
constexpr uint64_t random_below(const Key& key, uint64_t limit) {
  __extension__ using Wide = unsigned __int128;
  return uint64_t((Wide(random_bits(key)) * limit) >> 64);
}

/// In (0, 1).
constexpr double to_uniform(uint32_t bits) { return (bits + 0.5) / 4294967296.0; }
constexpr double random_uniform(const Key& key) { return to_uniform(uint32_t(random_bits(key) >> 32)); }

/// Standard normal, by Box and Muller from the two halves of 64 bits.
inline double random_normal(const Key& key) {
  const uint64_t bits = random_bits(key);
  const double radius = std::sqrt(-2 * std::log(to_uniform(uint32_t(bits >> 32))));
  return radius * std::cos(2 * std::numbers::pi * to_uniform(uint32_t(bits)));
}

}  // namespace trainer
