#include "images.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "digest.hpp"
#include "random.hpp"

namespace mlp {
namespace {

rondo::Error wrong(const std::string& path, const std::string& what) {
  return {rondo::ErrorCode::invalid_argument, fmt::format("{}: {}", path, what)};
}

rondo::Result<std::vector<uint8_t>> read_file(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  if (!file) return wrong(path, "cannot be read");
  std::vector<uint8_t> bytes;
  constexpr unsigned part = 1 << 20;
  for (;;) {
    const size_t before = bytes.size();
    bytes.resize(before + part);
    const int count = ::gzread(file.get(), bytes.data() + before, part);
    bytes.resize(before + size_t(std::max(count, 0)));
    int error = Z_OK;
    const char* text = ::gzerror(file.get(), &error);
    if (count < 0 || (error != Z_OK && error != Z_STREAM_END)) return wrong(path, text);
    if (count == 0) return bytes;
  }
}

// The IDX format: two zero bytes, the element type (8: bytes), the number of dimensions; then each dimension, big
// endian; then the elements.
struct Idx {
  std::vector<uint32_t> dimensions;
  std::vector<uint8_t> elements;
};

rondo::Result<Idx> read_idx(const std::string& path, size_t dimensions) {
  auto bytes = read_file(path);
  if (!bytes) return bytes.error();
  const size_t header = 4 + 4 * dimensions;
  if (bytes->size() < header || (*bytes)[0] != 0 || (*bytes)[1] != 0 || (*bytes)[2] != 8 ||
      (*bytes)[3] != dimensions)
    return wrong(path, fmt::format("is no IDX file of bytes with {} dimensions", dimensions));
  Idx idx;
  uint64_t elements = 1;
  for (size_t at = 4; at < header; at += 4) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) value = value << 8 | (*bytes)[at + i];
    idx.dimensions.push_back(value);
    // Past this it cannot fit any more, and must not wrap around.
    elements = std::min<uint64_t>(elements, bytes->size()) * value;
  }
  if (elements != bytes->size() - header)
    return wrong(path, fmt::format("announces {} elements and has {}", elements, bytes->size() - header));
  idx.elements.assign(bytes->begin() + long(header), bytes->end());
  return idx;
}

rondo::Result<Images> read_images(const std::string& folder, const std::string& part) {
  const auto path = [&](const char* kind) {
    const std::string plain = fmt::format("{}/{}-{}-ubyte", folder, part, kind);
    return std::filesystem::exists(plain) ? plain : plain + ".gz";
  };
  auto pixels = read_idx(path("images-idx3"), 3);
  if (!pixels) return pixels.error();
  auto labels = read_idx(path("labels-idx1"), 1);
  if (!labels) return labels.error();
  if (pixels->dimensions[0] != labels->dimensions[0] || pixels->elements.empty())
    return wrong(path("labels-idx1"),
                 fmt::format("{} labels for {} images", labels->dimensions[0], pixels->dimensions[0]));
  if (std::ranges::any_of(labels->elements, [](uint8_t label) { return label > 9; }))
    return wrong(path("labels-idx1"), "has a label above 9");
  return Images{pixels->dimensions[2], pixels->dimensions[1], std::move(pixels->elements),
                std::move(labels->elements)};
}

// Which of its seven segments each digit lights, and where they lie:
//
//    0      segments 0, 3, 6 are horizontal, 1, 2, 4, 5 vertical
//   1 2     .
//    3      .
//   4 5     .
//    6      .
constexpr std::array<uint8_t, 10> lit{0b1110111, 0b0100100, 0b1011101, 0b1101101, 0b0101110,
                                      0b1101011, 0b1111011, 0b0100101, 0b1111111, 0b1101111};
struct Box {
  uint32_t x, y, width, height;
};
constexpr std::array<Box, 7> boxes{{{9, 5, 10, 2},
                                    {8, 6, 2, 8},
                                    {18, 6, 2, 8},
                                    {9, 13, 10, 2},
                                    {8, 14, 2, 8},
                                    {18, 14, 2, 8},
                                    {9, 21, 10, 2}}};

}  // namespace

std::string Data::sha256() const {
  std::string parts;
  for (const auto* bytes : {&train.pixels, &train.labels, &test.pixels, &test.labels})
    parts += trainer::sha256_of({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  return trainer::sha256_of(parts);
}

Images generate(uint32_t count, uint64_t seed) {
  Images images{28, 28, std::vector<uint8_t>(size_t(count) * 28 * 28), std::vector<uint8_t>(count)};
  uint64_t draw = 0;
  const auto below = [&](uint32_t limit) {
    return uint32_t(trainer::random_below({seed, trainer::stream::generated_images, draw++}, limit));
  };
  for (uint32_t i = 0; i < count; i++) {
    uint8_t* image = images.pixels.data() + size_t(i) * 28 * 28;
    const uint32_t digit = images.labels[i] = uint8_t(below(10));
    const uint32_t right = below(7), down = below(7), brightness = 60 + below(41);
    for (uint32_t pixel = 0; pixel < 28 * 28; pixel++) image[pixel] = uint8_t(below(56));
    for (uint32_t segment = 0; segment < boxes.size(); segment++) {
      if (!(lit[digit] >> segment & 1)) continue;
      const Box& box = boxes[segment];
      for (uint32_t y = box.y; y < box.y + box.height; y++)
        for (uint32_t x = box.x; x < box.x + box.width; x++)
          image[(y + down - 3) * 28 + x + right - 3] += uint8_t(brightness);
    }
  }
  return images;
}

rondo::Result<Data> load(const std::string& source) {
  if (source == "generated") return Data{"generated digits", generate(12000, 1), generate(2000, 2)};
  const std::string first = source + "/train-images-idx3-ubyte";
  if (!std::filesystem::exists(first) && !std::filesystem::exists(first + ".gz"))
    return rondo::Error{
        rondo::ErrorCode::system,
        fmt::format("no images in {}: install the package dataset-fashion-mnist (tools/setup --mlp), or give "
                    "another folder with --data, or --data generated",
                    source)};
  auto train = read_images(source, "train");
  if (!train) return train.error();
  auto test = read_images(source, "t10k");
  if (!test) return test.error();
  if (train->size() != test->size()) return wrong(source, "the images for testing have another size");
  return Data{source, std::move(*train), std::move(*test)};
}

}  // namespace mlp
