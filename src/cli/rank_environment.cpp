#include "cli/rank_environment.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "base/environment.hpp"
#include "base/random.hpp"
#include "bootstrap/bytes.hpp"
#include "bootstrap/socket.hpp"

namespace rondo::cli {
namespace {

std::string random_hex(size_t bytes) {
  bootstrap::Bytes random(bytes);
  fill_random(random);
  std::string text;
  for (const std::byte byte : random) text += fmt::format("{:02x}", uint8_t(byte));
  return text;
}

// For programs that use another library's rendezvous: free now, and nobody holds it for them.
uint16_t free_port() {
  const auto listener = bootstrap::listen_on_loopback();
  return listener ? bootstrap::port_of(bootstrap::local_address(listener->get())) : uint16_t(29500);
}

}  // namespace

JobNames make_job_names() {
  const std::string job = random_hex(8);
  return {job, "unix:@rondo-" + job, random_hex(32), free_port()};
}

std::vector<std::string> rank_environment(const LaunchSpec& spec, const JobNames& names, uint32_t rank) {
  std::map<std::string, std::string> variables = all_variables();
  // These would win over what follows, in every rank alike.
  for (const char* name : {"RONDO_RANK", "RONDO_WORLD", "RONDO_SECRET_FILE"}) variables.erase(name);
  const std::string number = std::to_string(rank), count = std::to_string(spec.ranks);
  variables["RANK"] = variables["LOCAL_RANK"] = number;
  variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = count;
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(names.master_port);
  variables["RONDO_ROOT"] = names.root;
  variables["RONDO_SECRET"] = names.secret;
  variables["RONDO_JOB"] = names.job;
  for (const auto& [name, value] : spec.environment) variables[name] = value;
  std::vector<std::string> list;
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

}  // namespace rondo::cli
