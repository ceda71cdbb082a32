// What the trainers' command lines have in common.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace trainer {

/// Whole numbers from 1 to `most`.
inline CLI::Validator count(uint64_t most) {
  return CLI::Validator(
      [most](const std::string& word) {
        uint64_t value = 0;
        const bool whole = CLI::detail::lexical_cast(word, value) && word.find('-') == std::string::npos;
        return whole && value >= 1 && value <= most
                   ? std::string()
                   : fmt::format("'{}' is not a whole number from 1 to {}", word, most);
      },
      "");
}

/// Numbers from 0 to `most`.
inline CLI::Validator amount(double most) {
  return CLI::Validator(
      [most](const std::string& word) {
        double value = 0;
        const bool number = CLI::detail::lexical_cast(word, value);
        return number && value >= 0 && value <= most
                   ? std::string()
                   : fmt::format("'{}' is not a number from 0 to {:g}", word, most);
      },
      "");
}

inline void add_transport(CLI::App& app, std::string& transport) {
  app.add_option("--transport", transport,
                 "what carries the gradients: auto, tcp or shm; else RONDO_TRANSPORT")
      ->check(CLI::IsMember({"auto", "tcp", "shm"}));
}

}  // namespace trainer
