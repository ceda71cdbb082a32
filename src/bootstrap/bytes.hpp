// Little-endian bytes, written and read one field at a time, so that no struct layout ever reaches the wire.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bootstrap {

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class Writer {
 public:
  Writer& u8(uint8_t value) { return number(value, 1); }
  Writer& u16(uint16_t value) { return number(value, 2); }
  Writer& u32(uint32_t value) { return number(value, 4); }
  Writer& u64(uint64_t value) { return number(value, 8); }
  Writer& raw(std::span<const std::byte> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    return *this;
  }
  Writer& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  /// At most `longest` bytes of `text`, after their number.
  Writer& text(std::string_view text, size_t longest) {
    text = text.substr(0, longest);
    return u16(uint16_t(text.size())).raw(bytes_of(text));
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Writer& number(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(std::byte(value >> (8 * i)));
    return *this;
  }
  Bytes bytes_;
};

/// Reads past the end give zeros and make ok() false: one check at the end of a message is enough.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> data) : data_(data) {}
  uint8_t u8() { return uint8_t(number(1)); }
  uint16_t u16() { return uint16_t(number(2)); }
  uint32_t u32() { return uint32_t(number(4)); }
  uint64_t u64() { return number(8); }
  /// Nothing that follows counts.
  void fail() {
    ok_ = false;
    data_ = {};
  }
  std::span<const std::byte> raw(size_t count) {
    if (count > data_.size()) {
      fail();
      return {};
    }
    const auto head = data_.first(count);
    data_ = data_.subspan(count);
    return head;
  }
  template <size_t N>
  void raw(std::array<std::byte, N>& into) {
    if (const auto data = raw(N); ok_) std::memcpy(into.data(), data.data(), N);
  }
  /// As Writer::text wrote it; a longer one is wrong.
  std::string text(size_t longest) {
    const size_t count = u16();
    const auto data = raw(count <= longest ? count : SIZE_MAX);
    return std::string(reinterpret_cast<const char*>(data.data()), data.size());
  }
  bool ok() const { return ok_; }
  bool finished() const { return ok_ && data_.empty(); }

 private:
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    const auto data = raw(bytes);
    for (size_t i = 0; i < data.size(); ++i) value |= uint64_t(data[i]) << (8 * i);
    return value;
  }
  std::span<const std::byte> data_;
  bool ok_ = true;
};

}  // namespace rondo::bootstrap
