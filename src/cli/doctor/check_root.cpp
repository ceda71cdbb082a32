// Where rank 0 is to be found, and the way there.
#include <fmt/format.h>

#include <algorithm>

#include "base/root_address.hpp"
#include "cli/doctor/addresses.hpp"
#include "cli/doctor/checks.hpp"

namespace rondo::cli::doctor {
namespace {

struct Question {
  const Machine& machine;
  RootAddress root;
  std::string text;  // as it was given
  bool has_secret = false;
};

std::string interface_of(const Machine& machine, const Ip& ip) {
  const auto at = std::ranges::find(machine.addresses, ip, &bootstrap::NetworkAddress::ip);
  return at != machine.addresses.end() ? at->interface : ip.is_loopback() ? "lo" : "?";
}

// As a rank of this machine would choose, having reached rank 0 from `source`.
Finding data_address(const Question& about, const Ip& source) {
  const Lookup lookup = lookup_in(about.machine.variables);
  const bool literal_loopback =
      about.root.name == "localhost" || about.root.name == "::1" || about.root.name.starts_with("127.");
  const auto choice =
      bootstrap::choose_address(about.machine.addresses, lookup("RONDO_INTERFACE").value_or(""),
                                {source, literal_loopback || !about.has_secret});
  if (!choice)
    return problem(choice.error().message, "every rank on this machine ends with this while it joins",
                   "name one of the interfaces above in RONDO_INTERFACE, or unset it");
  return ok(fmt::format("ranks here would listen for their peers at {} of {}", choice->ip.to_string(),
                        choice->interface));
}

Finding way(const Question& about, const RootPath& path) {
  const std::string there = join_host_port(path.ip.to_string(), about.root.port);
  const std::string from = path.source ? fmt::format(", from {} of {}", path.source->to_string(),
                                                     interface_of(about.machine, *path.source))
                                       : "";
  const std::string way =
      (about.root.name == path.ip.to_string() ? there : about.root.name + " is " + there) + from;
  const bool here = is_here(about.machine, path.ip);
  switch (path.reply) {
    case Reply::listening:
      if (!here) return ok(way + ": something listens there");
      return problem(
          fmt::format("{}: something listens there already, on this machine", way),
          "if it is not your own job's rank 0, rank 0 cannot have the port",
          fmt::format("end it (ss -ltnp 'sport = :{}' shows it), or choose another port", about.root.port));
    case Reply::refused:
      return ok(way +
                (here ? ": the port is free for rank 0" : ": the machine answers; nothing listens yet"));
    case Reply::silent:
      return warning(
          way + ": no answer in time",
          "a machine that is there refuses at once; a firewall drops, or the machine is off",
          "ping it, and allow TCP between the machines, for this port and for those of RONDO_PORTS");
    case Reply::unreachable:
      break;
  }
  return problem(way + ": " + path.error, "ranks on this machine cannot join",
                 "ip route get " + path.ip.to_string() + " shows where it ends");
}

std::optional<Finding> secrecy(const Question& about) {
  const auto& paths = about.machine.root.paths;
  if (about.has_secret || std::ranges::any_of(paths, [](const auto& path) { return path.ip.is_loopback(); }))
    return std::nullopt;
  return problem(
      fmt::format("the root {} can be reached from other machines, and there is no secret", about.text),
      "without one Rondo uses loopback and Unix sockets only: rank 0 ends at once",
      "export RONDO_SECRET=$(openssl rand -hex 32), the same on every rank; rondo run does it by itself");
}

std::optional<Finding> transport(const Question& about) {
  const auto& paths = about.machine.root.paths;
  if (lookup_in(about.machine.variables)("RONDO_TRANSPORT") != "shm" ||
      std::ranges::any_of(paths, [&](const auto& path) { return is_here(about.machine, path.ip); }))
    return std::nullopt;
  return problem(fmt::format("RONDO_TRANSPORT=shm, and the root {} is on another machine", about.text),
                 "machines share no memory: every rank gets an error", "unset RONDO_TRANSPORT");
}

std::optional<Finding> port(const Question& about) {
  const PortRange& given = about.machine.ports.ephemeral;
  const auto& paths = about.machine.root.paths;
  if (about.root.port < given.first || about.root.port > given.last ||
      std::ranges::none_of(paths, [&](const auto& path) { return is_here(about.machine, path.ip); }))
    return std::nullopt;
  return note(fmt::format("port {} is one that the kernel gives to any connection ({}-{})", about.root.port,
                          given.first, given.last),
              "now and then it will be taken when rank 0 starts",
              fmt::format("a port below {}, or net.ipv4.ip_local_reserved_ports", given.first));
}

Findings over_tcp(const Question& about) {
  const Root& root = about.machine.root;
  if (root.paths.empty())
    return {problem(root.name_error.empty() ? about.text + " could not be tried" : root.name_error,
                    "no rank on this machine finds rank 0",
                    "correct the name, or add it to /etc/hosts or the name server; an address does too")};
  Findings found;
  // A name may mean several addresses, of which one that works is enough.
  for (const RootPath& path : root.paths) found.push_back(way(about, path));
  if (std::ranges::any_of(found, [](const Finding& f) { return f.severity == Severity::ok; }))
    std::erase_if(found, [&](const Finding& f) { return f.severity != Severity::ok; });
  const auto used =
      std::ranges::find_if(root.paths, [](const auto& path) { return path.reply != Reply::unreachable; });
  if (used != root.paths.end() && used->source) found.push_back(data_address(about, *used->source));
  for (const auto& more : {secrecy(about), transport(about), port(about)})
    if (more) found.push_back(*more);
  return found;
}

}  // namespace

Findings check_root(const Machine& machine, const Plan& plan) {
  if (plan.root.empty())
    return {ok("not given (--root or RONDO_ROOT); a launcher on one machine needs none")};
  const auto root = parse_root(plan.root);
  if (!root)
    return {problem(fmt::format("{}: {}", plan.root, root.error().message), "no rank finds rank 0",
                    "correct it on every rank")};
  const Lookup lookup = lookup_in(machine.variables);
  const bool has_secret = lookup("RONDO_SECRET") || lookup("RONDO_SECRET_FILE");
  switch (root->kind) {
    case RootAddress::Kind::tcp:
      return over_tcp({machine, *root, plan.root, has_secret});
    case RootAddress::Kind::abstract_unix:
    case RootAddress::Kind::file:
      break;
  }
  return {ok(plan.root + ", for ranks of this machine only")};
}

}  // namespace rondo::cli::doctor
