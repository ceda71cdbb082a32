// Some variables are right or wrong only beside others:
//
//   RONDO_RANK       < RONDO_WORLD                    RONDO_TLS        needs a secret, unless there is one rank
//   RONDO_ADVERTISE  a secret, RONDO_PORTS for a port  RONDO_LISTEN    needs a root that is a host and a port
//   RONDO_FAULT      ranks < RONDO_WORLD
//
// So they are tried one after another, the needed ones first, each beside those that have turned out right. Where one
// that others need is wrong, or where nobody has said it yet, a right value stands in for it: nobody else is blamed.
#include "cli/doctor/judge_variables.hpp"

#include <set>
#include <string>

#include "base/advertised.hpp"
#include "base/launcher.hpp"
#include "base/root_address.hpp"
#include "base/setting.hpp"

namespace rondo::cli::doctor {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr auto rank_name = "RONDO_RANK", world_name = "RONDO_WORLD", root_name = "RONDO_ROOT",
               secret_name = "RONDO_SECRET", file_name = "RONDO_SECRET_FILE", ports_name = "RONDO_PORTS";
constexpr auto some_root = "127.0.0.1:29700", some_secret = "any", some_port = "45000";

std::optional<std::string> complaint(const Variables& variables) {
  const Lookup lookup = lookup_in(variables);
  if (const auto options = resolve({}, lookup); !options) return options.error().message;
  if (const auto level = log_level(lookup); !level) return level.error().message;
  return std::nullopt;
}

// Whether all ranks of the job are those of --n: a root that other machines reach may have ranks there.
bool is_on_one_machine(const std::string& root) {
  if (root.empty()) return true;  // a launcher on one machine needs none
  const auto parsed = parse_root(root);
  return parsed &&
         (parsed->kind != RootAddress::Kind::tcp || parsed->name == "localhost" || is_loopback(parsed->name));
}

class Judge {
 public:
  Judge(const Machine& machine, const Plan& plan)
      : plan_(plan), set_(machine.variables), is_rank_(is_rank(lookup_in(machine.variables))) {
    std::erase_if(set_, [](const auto& variable) { return variable.second.empty(); });
    result_.right = set_;
    assume_a_job();
  }

  Judgement judged() {
    for (const auto name : {world_name, rank_name, root_name}) try_one(name);
    assume_planned_ranks();
    for (const auto name : {secret_name, file_name, ports_name}) try_one(name);
    for (const auto name : variable_names) try_one(std::string(name));
    return std::move(result_);
  }

 private:
  // What the launcher has said, if that is right by itself; else rank 0 of the largest world.
  void assume_a_job() {
    beside_ = set_;
    std::erase_if(beside_, [](const auto& variable) { return variable.first.starts_with("RONDO_"); });
    const bool is_told = find_launcher(lookup_in(beside_)).has_value();
    const std::string root = parse_root(plan_.root) ? plan_.root : some_root;
    beside_[root_name] = root;
    if (is_told && !complaint(beside_)) return;
    beside_ = {{root_name, root}, {rank_name, "0"}, {world_name, std::to_string(largest_world)}};
    is_world_open_ = true;
  }

  // Where no variable says how many ranks there are.
  void assume_planned_ranks() {
    const auto root = set_.find(root_name);
    if (!is_world_open_ || !plan_.ranks) return;
    if (!is_on_one_machine(root == set_.end() ? plan_.root : root->second)) return;
    Variables trial = beside_;
    trial[world_name] = std::to_string(*plan_.ranks);
    if (!complaint(trial)) beside_ = std::move(trial);
  }

  void try_one(const std::string& name) {
    const auto value = set_.find(name);
    if (value == set_.end() || !tried_.insert(name).second) return;
    Variables trial = beside_;
    trial[name] = value->second;
    if (const auto text = complaint(trial)) {
      result_.found.push_back(blame(name, *text, std::move(trial)));
      leave_out(name);
      return;
    }
    beside_ = std::move(trial);
    if (name == world_name) is_world_open_ = false;
  }

  Finding blame(const std::string& name, const std::string& text, Variables trial) const {
    trial[secret_name] = some_secret;
    const bool needs_secret = name != file_name && !complaint(trial);
    if (needs_secret && !is_rank_)
      return warning(text,
                     "every rank that sees it ends at once, but not those of rondo run, which makes a secret",
                     "start the ranks with rondo run, set RONDO_SECRET on every rank, or unset " + name);
    return problem(text, "every rank that sees it ends at once", "correct it or unset " + name);
  }

  void leave_out(const std::string& name) {
    const std::string in_its_place = name == file_name ? secret_name : name;
    if (name == file_name) beside_[secret_name] = some_secret;
    if (name == ports_name) beside_[ports_name] = some_port;
    result_.right.erase(name);
    if (const auto other = beside_.find(in_its_place); other != beside_.end())
      result_.right[in_its_place] = other->second;
  }

  const Plan& plan_;
  Variables set_;  // and not empty
  const bool is_rank_;
  Variables beside_;            // what the next one is tried with
  bool is_world_open_ = false;  // the number of ranks in it is a guess
  std::set<std::string> tried_;
  Judgement result_;
};

}  // namespace

Judgement judge_variables(const Machine& machine, const Plan& plan) { return Judge(machine, plan).judged(); }

}  // namespace rondo::cli::doctor
