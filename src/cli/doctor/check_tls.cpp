// What would be encrypted.
#include "cli/doctor/checks.hpp"

namespace rondo::cli::doctor {

Findings check_tls(const Machine& machine, const Plan&) {
  const Lookup lookup = lookup_in(machine.variables);
  const std::string value = lookup("RONDO_TLS").value_or("0");
  if (value == "0")
    return {ok("off (RONDO_TLS): what ranks send each other over TCP can be read and altered on its way")};
  if (value != "1") return {ok("RONDO_TLS is neither 0 nor 1: see environment")};
  const std::string on = "on (RONDO_TLS=1): all that goes over TCP is encrypted; ";
  if (lookup("RONDO_TRANSPORT") == "tcp") return {ok(on + "the data of every rank do (RONDO_TRANSPORT=tcp)")};
  return {ok(on + "data in shared memory, where the ranks are all on one machine, are not, and stay in it")};
}

}  // namespace rondo::cli::doctor
