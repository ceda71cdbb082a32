// What the targets share: the fuzzer's bytes taken apart, and the check of a property. An input that has run out
// gives zeros, so that every input means something.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

namespace rondo::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(std::as_bytes(std::span(data, size))) {}
  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> rest() { return take(rest_.size()); }
  std::string text() {
    const auto all = rest();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }
  /// At most `count` bytes.
  std::span<const std::byte> take(size_t count) {
    const auto head = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(head.size());
    return head;
  }
  /// Any plain type, from its bytes.
  template <class T>
  T value() {
    T value{};
    const auto bytes = take(sizeof value);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&value));
    return value;
  }
  template <class T>
  void fill(T& array) {
    array = value<T>();
  }

 private:
  std::span<const std::byte> rest_;
};

/// A property that does not hold ends the process, which is how the fuzzer learns of a finding.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "property broken: %s\n", property);
  std::abort();
}

/// decode(encode(x)) is x, for whatever x was decoded.
template <class Decode>
void round_trip(std::span<const std::byte> bytes, Decode decode, const char* property) {
  const auto first = decode(bytes);
  if (!first) return;
  const auto encoded = encode(*first);
  const auto second = decode(std::span<const std::byte>(encoded));
  require(second && *second == *first, property);
}

}  // namespace rondo::fuzz
