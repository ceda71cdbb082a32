// Text from the model, a byte at a time.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "model.hpp"

namespace trainer {

/// `count` bytes that the model thinks may follow `prompt`. Below 1, `temperature` sharpens its opinion.
template <class T>
std::string sample(Model<T>& model, std::span<const T> parameters, const std::string& prompt, size_t count,
                   double temperature, uint64_t seed);

}  // namespace trainer
