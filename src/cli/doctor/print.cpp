#include "cli/doctor/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rondo::cli::doctor {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Reply reply) {
  switch (reply) {
    case Reply::listening:
      return "listening";
    case Reply::refused:
      return "refused";
    case Reply::silent:
      return "silent";
    case Reply::unreachable:
      return "unreachable";
  }
  return "?";
}

std::string counted(size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string summary(const Findings& findings) {
  const auto count = [&](Severity severity) {
    return size_t(std::ranges::count(findings, severity, &Finding::severity));
  };
  const size_t problems = count(Severity::problem), warnings = count(Severity::warning),
               notes = count(Severity::note);
  if (problems + warnings + notes == 0) return "nothing is wrong";
  return fmt::format("{}, {}, {}", counted(problems, "problem"), counted(warnings, "warning"),
                     counted(notes, "note"));
}

Json limit(const Limit& limit) {
  const auto value = [](uint64_t number) { return number == unlimited ? Json() : Json(number); };
  return {{"now", value(limit.now)}, {"most", value(limit.most)}};
}

Json range(const PortRange& ports) { return {ports.first, ports.last}; }

Json variables(const Machine& machine) {
  Json list = Json::object();
  for (const auto& [name, value] : machine.variables)
    if (name.starts_with("RONDO_")) list[name] = name == "RONDO_SECRET" ? "(not shown)" : value;
  return list;
}

Json addresses(const Machine& machine) {
  Json list = Json::array();
  for (const auto& at : machine.addresses) {
    list.push_back({{"interface", at.interface}, {"ip", at.ip.to_string()}});
    const auto speed = machine.megabits.find(at.interface);
    if (speed != machine.megabits.end()) list.back()["megabits"] = speed->second;
  }
  return list;
}

Json host(const HostName& name) {
  Json list = Json::array();
  for (const Ip& ip : name.addresses) list.push_back(ip.to_string());
  return {{"name", name.name}, {"addresses", list}, {"error", name.error}};
}

Json root(const Root& found) {
  Json paths = Json::array();
  for (const RootPath& path : found.paths)
    paths.push_back({{"ip", path.ip.to_string()},
                     {"source", path.source ? Json(path.source->to_string()) : Json()},
                     {"reply", name_of(path.reply)},
                     {"error", path.error}});
  return {{"error", found.name_error}, {"addresses", paths}};
}

Json rdma(const std::vector<RdmaPort>& ports) {
  Json list = Json::array();
  for (const RdmaPort& port : ports) {
    Json gids = Json::array();
    for (const Gid& gid : port.gids)
      gids.push_back({{"index", gid.index}, {"ip", gid.ip.to_string()}, {"type", gid.type}});
    list.push_back({{"device", port.device},
                    {"port", port.port},
                    {"state", port.state},
                    {"layer", port.layer},
                    {"interface", port.interface},
                    {"gids", gids}});
  }
  return list;
}

Json gpus(const Gpus& gpus) {
  Json list = Json::array();
  for (const Gpu& gpu : gpus.found) list.push_back({{"pci", gpu.pci}, {"name", gpu.name}});
  return {{"found", list}, {"nvidia_driver", gpus.nvidia_driver}};
}

Json as_json(const Machine& machine) {
  const Cpus& cpus = machine.cpus;
  const Ports& ports = machine.ports;
  return {{"variables", variables(machine)},
          {"descriptors", limit(machine.limits.descriptors)},
          {"locked_bytes", limit(machine.limits.locked_bytes)},
          {"file_bytes", limit(machine.limits.file_bytes)},
          {"cores",
           {{"present", cpus.present},
            {"usable", cpus.usable},
            {"quota", cpus.quota ? Json(*cpus.quota) : Json()}}},
          {"dev_shm_bytes", machine.dev_shm.there ? Json(machine.dev_shm.bytes) : Json()},
          {"clock_source", machine.clock_source},
          {"addresses", addresses(machine)},
          {"host", host(machine.host)},
          {"ports",
           {{"wanted", ports.wanted ? range(*ports.wanted) : Json()},
            {"not_free", ports.not_free},
            {"ephemeral", range(ports.ephemeral)}}},
          {"root", root(machine.root)},
          {"rdma", rdma(machine.rdma)},
          {"gpus", gpus(machine.gpus)},
          {"copies", {{"shared", machine.copies.shared}, {"reading", machine.copies.reading}}}};
}

}  // namespace

std::string as_text(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {:<14} {}\n", doctor::name_of(finding.severity), finding.check, finding.what);
    if (finding.severity == Severity::ok) continue;
    text += fmt::format("{:<23} why: {}\n{:<23} fix: {}\n", "", finding.why, "", finding.fix);
  }
  return text + "rondo doctor: " + summary(findings) + "\n";
}

std::string as_json(const Findings& findings, const Machine& machine) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"check", finding.check},
                    {"severity", doctor::name_of(finding.severity)},
                    {"what", finding.what},
                    {"why", finding.why},
                    {"fix", finding.fix}});
  const Json all{{"rondo", RONDO_VERSION}, {"findings", list}, {"machine", as_json(machine)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rondo::cli::doctor
