// Slurm's way to write many host names: "login,node[01-03,07],gpu[1-2]-ib".
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace rondo {

/// The first host of the list; nothing when it is malformed.
std::optional<std::string> first_host(std::string_view list);

}  // namespace rondo
