// The perceptron: its gradient, its images, the order of its data, and that it learns.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "../folder.hpp"
#include "images.hpp"
#include "learner.hpp"
#include "network.hpp"
#include "random.hpp"

using namespace mlp;
using rondo::test::Folder;
using trainer::gemm_reference;

namespace {

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += char(value >> shift & 255);
  return bytes;
}
std::string pixels_file(uint32_t count, uint32_t height, uint32_t width) {
  std::string bytes = big_endian(0x803) + big_endian(count) + big_endian(height) + big_endian(width);
  for (uint32_t i = 0; i < count * height * width; i++) bytes += char(i);
  return bytes;
}
std::string labels_file(const std::string& labels) {
  return big_endian(0x801) + big_endian(uint32_t(labels.size())) + labels;
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
void write_compressed(const std::string& path, const std::string& bytes) {
  const gzFile file = ::gzopen(path.c_str(), "wb");
  REQUIRE(::gzwrite(file, bytes.data(), unsigned(bytes.size())) == int(bytes.size()));
  REQUIRE(::gzclose(file) == Z_OK);
}

// Three images of 2 x 5 to learn from, one to test with.
void write_small_set(const std::string& folder) {
  write_compressed(folder + "/train-images-idx3-ubyte.gz", pixels_file(3, 2, 5));
  write_compressed(folder + "/train-labels-idx1-ubyte.gz", labels_file({1, 9, 0}));
  write(folder + "/t10k-images-idx3-ubyte", pixels_file(1, 2, 5));
  write(folder + "/t10k-labels-idx1-ubyte", labels_file({4}));
}

std::string refusal(const std::string& folder) {
  const auto data = load(folder);
  REQUIRE_FALSE(data.ok());
  return data.error().message;
}

}  // namespace

TEST_CASE(
    "mlp: the whole gradient against finite differences, in double, and what a forgotten ReLU would do") {
  Network<double> network({6, 5, 4, 3}, gemm_reference<double>);
  REQUIRE(network.parameters() == 7 * 5 + 6 * 4 + 5 * 3);
  auto parameters = network.initial(3);
  for (size_t i = 0; i < parameters.size(); i++) parameters[i] += 0.2 * trainer::random_normal({5, 0, i});
  Batch<double> batch;
  for (uint64_t i = 0; i < 4 * 6; i++) batch.pixels.push_back(trainer::random_uniform({6, 0, i}));
  batch.labels = {2, 0, 1, 2};

  std::vector<double> gradient(parameters.size(), 0.5);  // to be added to
  std::vector<size_t> progress;
  const auto sum = network.loss_and_gradient(parameters, batch, gradient, [&](size_t first) {
    progress.push_back(first);
    // What is said to be complete has its last value, what is before has not been touched.
    if (first > 0) CHECK(gradient[first - 1] == 0.5);
    CHECK(gradient[first] != 0.5);
  });
  CHECK(sum.targets == 4);
  CHECK(progress == std::vector<size_t>{59, 35, 0});

  const auto loss = [&] {
    std::vector<double> scratch(parameters.size());
    return network.loss_and_gradient(parameters, batch, scratch).loss;
  };
  size_t zeros = 0;
  for (size_t i = 0; i < parameters.size(); i++) {
    const double before = parameters[i], h = 1e-5;
    parameters[i] = before + h;
    const double above = loss();
    parameters[i] = before - h;
    const double below = loss();
    parameters[i] = before;
    CHECK(std::abs(gradient[i] - 0.5 - (above - below) / (2 * h)) < 1e-8);
    zeros += gradient[i] == 0.5;
  }
  CHECK(zeros >
        0);  // some hidden unit is off for every row, so a ReLU that passes everything on would be seen
}

TEST_CASE("mlp: images from files, compressed and not") {
  const Folder folder;
  write_small_set(folder.path);
  const auto data = load(folder.path);
  REQUIRE_MESSAGE(data.ok(), data.error().message);
  CHECK(data->train.count() == 3);
  CHECK(data->train.width == 5);
  CHECK(data->train.height == 2);
  CHECK(data->train.image(2)[9] == 29);
  CHECK(data->train.labels == std::vector<uint8_t>{1, 9, 0});
  CHECK(data->test.labels == std::vector<uint8_t>{4});
  CHECK(data->sha256().size() == 64);
}

TEST_CASE("mlp: files that are not what they should be are refused, and named") {
  const Folder folder;
  CHECK(refusal(folder.path).find("install the package dataset-fashion-mnist") != std::string::npos);
  write_small_set(folder.path);
  const std::string labels = folder.path + "/train-labels-idx1-ubyte",
                    pixels = folder.path + "/train-images-idx3-ubyte";
  SUBCASE("a label above 9") {
    write(labels, labels_file({1, 10, 0}));
    CHECK(refusal(folder.path) == labels + ": has a label above 9");
  }
  SUBCASE("another number of labels") {
    write(labels, labels_file({1, 2}));
    CHECK(refusal(folder.path) == labels + ": 2 labels for 3 images");
  }
  SUBCASE("too short") {
    write(pixels, pixels_file(3, 2, 5).substr(0, 20));
    CHECK(refusal(folder.path) == pixels + ": announces 30 elements and has 4");
  }
  SUBCASE("dimensions whose product wraps around") {
    write(pixels, big_endian(0x803) + big_endian(1u << 31) + big_endian(1u << 31) + big_endian(4));
    CHECK(refusal(folder.path).find("elements and has 0") != std::string::npos);
  }
  SUBCASE("not IDX") {
    write(pixels, "P5 2 5 255 and so on");
    CHECK(refusal(folder.path) == pixels + ": is no IDX file of bytes with 3 dimensions");
  }
  SUBCASE("cut off while compressed") {
    std::filesystem::resize_file(pixels + ".gz", 30);
    CHECK(refusal(folder.path).find(pixels + ".gz: ") == 0);
  }
}

TEST_CASE("mlp: every epoch visits each sample once, each in its own order") {
  const auto first = epoch_order(1, 0, 1001);
  auto sorted = first;
  std::ranges::sort(sorted);
  for (uint32_t i = 0; i < 1001; i++) REQUIRE(sorted[i] == i);
  CHECK(first == epoch_order(1, 0, 1001));
  CHECK(first != sorted);
  CHECK(first != epoch_order(1, 1, 1001));
  CHECK(first != epoch_order(2, 0, 1001));
  CHECK(epoch_order(1, 0, 0).empty());
  CHECK(epoch_order(1, 0, 1) == std::vector<uint32_t>{0});
}

TEST_CASE("mlp: generated digits are the same every time, all ten, and can be learned") {
  const Images train = generate(2000, 1), test = generate(500, 2);
  CHECK(train.pixels == generate(2000, 1).pixels);
  CHECK(train.pixels != generate(2000, 3).pixels);
  for (uint8_t digit = 0; digit < 10; digit++) CHECK(std::ranges::count(test.labels, digit) > 20);

  Learner<float> learner(Network<float>({28 * 28, 32, 10}, trainer::choose_gemm<float>().gemm),
                         {.epochs = 3, .batch = 32});
  trainer::NoSum<float> sum;
  trainer::NoSum<double> right;
  CHECK(*learner.accuracy(test, right) < 0.3);
  for (uint64_t epoch = 0; epoch < 3; epoch++) REQUIRE(learner.epoch(train, epoch, sum).ok());
  CHECK(*learner.accuracy(test, right) > 0.9);
}
