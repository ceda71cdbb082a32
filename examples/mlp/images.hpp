// Labelled images: Fashion-MNIST from its package, or generated ones that look like digits.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rondo/result.hpp"

namespace mlp {

inline constexpr const char* fashion_mnist = "/usr/share/datasets/fashion-mnist";

struct Images {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [count, height, width]
  std::vector<uint8_t> labels;  // 0 .. 9
  uint32_t count() const { return uint32_t(labels.size()); }
  uint32_t size() const { return width * height; }
  std::span<const uint8_t> image(uint32_t i) const {
    return std::span(pixels).subspan(size_t(i) * size(), size());
  }
};

struct Data {
  std::string name;
  Images train, test;
  std::string sha256() const;
};

/// `source` is "generated", or a folder with the four files of MNIST or one of its kin, compressed or not.
/// Errors: a file is missing (says which package to install) or is not what it should be.
rondo::Result<Data> load(const std::string& source);

/// Digits of seven segments, each at its own place and brightness, in noise; the same on every machine.
Images generate(uint32_t count, uint64_t seed);

}  // namespace mlp
