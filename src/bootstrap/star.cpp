#include "bootstrap/star.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "bootstrap/interfaces.hpp"

namespace rondo::bootstrap {

void later(asio::io_context& context, milliseconds delay, std::function<void()> call) {
  const auto timer = std::make_shared<asio::steady_timer>(context, delay);
  timer->async_wait([timer, call = std::move(call)](const asio::error_code& error) {
    if (!error) call();
  });
}

Message failure_message(Rank from, const Error& error) {
  return {Kind::failed, from, everyone, encode(Failure{error.code, error.peer, error.message, false})};
}

Message finding_message(Rank from, const Error& error) {
  return {Kind::failed, from, everyone, encode(Failure{error.code, error.peer, error.message, true})};
}

Address as_others_see(const StarSetup& setup, const Address& bound) {
  const auto& advertised = setup.advertised;
  if (advertised.ip.empty()) return bound;
  return tcp_address(asio::ip::make_address(advertised.ip),
                     advertised_port(advertised, setup.ports, port_of(bound)));
}

bool one_machine(const StarSetup& setup) {
  if (setup.root.kind != RootAddress::Kind::tcp || setup.credentials.secret.empty()) return true;
  asio::error_code error;
  const auto ip = asio::ip::make_address(setup.root.name, error);
  return error ? setup.root.name == "localhost" : ip.is_loopback();
}

std::optional<Error> needs_secret(const StarSetup& setup, const Address& address) {
  if (!setup.credentials.secret.empty() || is_local(address)) return std::nullopt;
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("the root {} means {}, which other machines can reach, and there is no secret: set "
                  "RONDO_SECRET (or RONDO_SECRET_FILE) to the same long random text on every rank",
                  to_string(setup.root), to_text(address))};
}

Result<DataListener> open_data_listener(const StarSetup& setup,
                                        const std::optional<asio::ip::address>& control) {
  const Situation situation{control, one_machine(setup)};
  const auto choice = choose_address(machine_addresses(), setup.interfaces, situation);
  if (!choice) return choice.error();
  if (setup.credentials.secret.empty() && !choice->ip.is_loopback())
    return Error{ErrorCode::invalid_argument,
                 fmt::format("RONDO_INTERFACE={} means {}, which other machines can reach, and there is no "
                             "secret: set RONDO_SECRET (or RONDO_SECRET_FILE) on every rank",
                             setup.interfaces, choice->ip.to_string())};
  auto listener = listen_within(choice->ip, setup.ports, setup.rank);
  if (!listener) return listener.error();
  const Address bound = local_address(listener->get()), seen = as_others_see(setup, bound);
  DataListener data{std::move(*listener), fmt::format("interface {}: {}{}", choice->interface, choice->why,
                                                      seen == bound ? "" : "; peers dial " + to_text(seen))};
  log::line(log::Level::info, int(setup.rank), "listens for its peers at {} of {}", to_text(bound), data.why);
  return data;
}

}  // namespace rondo::bootstrap
