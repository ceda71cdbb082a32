// Errors as values: everything that a peer, the network or the user can cause is a Result.
#pragma once
#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "rondo/types.hpp"

namespace rondo {

enum class ErrorCode : uint8_t {
  invalid_argument,  ///< the caller's arguments, options or environment are wrong; nothing was sent
  timeout,           ///< a deadline passed; the message says who has not arrived
  peer_lost,         ///< a rank died or closed its connection
  mismatch,          ///< ranks called with different operation, count, type, reduction or root
  refused,           ///< the other side did not prove the secret, or speaks another version
  aborted,           ///< the communicator was aborted or had failed before
  system,            ///< the operating system refused something; the message carries errno's text
};

constexpr std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::peer_lost:
      return "peer_lost";
    case ErrorCode::mismatch:
      return "mismatch";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::aborted:
      return "aborted";
    case ErrorCode::system:
      return "system";
  }
  return "?";
}

/// What went wrong. `message` is complete for a person: who, with whom, in which operation, what to do.
/// `peer` is the rank to blame, where one is known.
struct Error {
  ErrorCode code;
  std::string message;
  std::optional<Rank> peer = std::nullopt;
};

/// A value or an Error. `value()` and `operator*` may be called only when it holds a value (asserted).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  T& value() & { return assert(ok()), *std::get_if<0>(&state_); }
  const T& value() const& { return assert(ok()), *std::get_if<0>(&state_); }
  T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return assert(!ok()), *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const { return assert(!ok()), *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace rondo
