// Judging addresses.
#pragma once
#include <algorithm>

#include "cli/doctor/machine.hpp"

namespace rondo::cli::doctor {

/// Packets to it stay on this machine.
inline bool is_here(const Machine& machine, const Ip& ip) {
  return ip.is_loopback() ||
         std::ranges::any_of(machine.addresses, [&](const auto& at) { return at.ip == ip; });
}

/// Whether a rank would choose it by itself for peers on other machines.
inline bool is_reachable(const bootstrap::NetworkAddress& at) {
  const auto alone = bootstrap::choose_address({at}, "", {asio::ip::address_v4::loopback(), false});
  return alone && alone->ip == at.ip && !at.ip.is_loopback();
}

}  // namespace rondo::cli::doctor
