#include "cli/explain_job.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/doctor/process_state.hpp"
#include "cli/explain_selection.hpp"

namespace rondo::cli {
namespace {

using nlohmann::json;

void print_algorithms(const json& communicator) {
  const auto forced = communicator.at("algorithm").get<std::string>();
  const auto table = communicator.at("tuning").get<std::string>();
  const SelectionOf about{.world = communicator.at("world"),
                          .transport = communicator.at("transport"),
                          .tuning = {},
                          .cores = communicator.at("cores"),
                          .nodes = communicator.at("nodes")};
  if (forced != "auto")
    fmt::print("algorithm  {} wherever it can run: RONDO_ALGORITHM of rank 0; else\n", forced);
  fmt::print("algorithm  {} for {} ranks over {}, {} cores on a node, f32 sums:\n",
             is_tuned_by(about, table) ? "as tuned (RONDO_TUNING of rank 0), else the model's choice"
                                       : "the model's choice",
             about.world, about.transport, about.cores);
  print_selection(about, table, "           ");
}

// Connections of the control plane may be TCP where the data are in shared memory.
const char* encryption(bool tls, bool over_tcp) {
  if (over_tcp)
    return tls ? "TLS 1.3 on every TCP connection (RONDO_TLS=1)"
               : "none: what the ranks send can be read and altered on its way (RONDO_TLS is not 1)";
  return tls ? "none of the data, which stay in this machine's memory; TLS 1.3 on TCP connections "
               "(RONDO_TLS=1)"
             : "none: the data stay in this machine's memory";
}

void print(const json& communicator) {
  const auto text = [&](const char* key) { return communicator.at(key).get<std::string>(); };
  fmt::print("rank {} of {}, communicator {}\n", communicator.at("rank").get<uint32_t>(),
             communicator.at("world").get<uint32_t>(), text("epoch"));
  if (communicator.at("world") == 1) return fmt::print("alone: nothing is sent\n\n");
  fmt::print("interface  {}\n", text("address").empty() ? "listens nowhere: " + text("address_reason")
                                                        : text("address") + ": " + text("address_reason"));
  fmt::print("transport  {}: {}\n", text("transport"), text("transport_reason"));
  fmt::print("encryption {}\n", encryption(communicator.at("tls"), text("transport") == "tcp"));
  print_algorithms(communicator);
  if (const json& failure = communicator.at("failure"); !failure.is_null())
    fmt::print("failed     {}: {}\n", failure.at("code").get<std::string>(),
               failure.at("message").get<std::string>());
  if (!communicator.at("operations").empty()) {
    const json& last = communicator.at("operations").front();
    fmt::print("last call  {}: {}, {}\n", last.at("call").get<std::string>(),
               last.at("algorithm").get<std::string>(), last.at("outcome").get<std::string>());
  }
  fmt::print("\n");
}

}  // namespace

int explain_job(pid_t pid) {
  const auto state = doctor::process_state(pid);
  if (!state) return fmt::print(stderr, "rondo explain: {}\n", state.error().message), 1;
  try {
    const json document = json::parse(*state);
    if (document.at("communicators").empty()) fmt::print("process {} has no communicator\n", pid);
    for (const json& communicator : document.at("communicators")) print(communicator);
    return 0;
  } catch (const json::exception&) {
    fmt::print(stderr, "rondo explain: process {} uses another version of Rondo, which does not say enough\n",
               pid);
    return 1;
  }
}

}  // namespace rondo::cli
