#include "bootstrap/interfaces.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "bootstrap/socket.hpp"

namespace rondo::bootstrap {
namespace {

using asio::ip::address;

constexpr std::string_view allowed_items =
    "allowed are interface names or their beginnings, addresses, and networks such as 10.0.0.0/8, with "
    "commas and no spaces between them; ^ (all but these) and = (exactly these names) stand once, before "
    "the first";

Error wrong(std::string_view list, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("RONDO_INTERFACE={}: {}", list, why)};
}

bool is_link_local(const address& ip) {
  if (ip.is_v6()) return ip.to_v6().is_link_local();
  return (ip.to_v4().to_uint() >> 16) == 0xa9fe;  // 169.254/16
}

// Bridges between this machine's own containers and virtual machines.
bool is_bridge(std::string_view name) {
  constexpr std::array<std::string_view, 3> bridges{"docker", "br-", "virbr"};
  return std::any_of(bridges.begin(), bridges.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

// Other machines can be expected to reach it.
bool is_usable(const NetworkAddress& at) {
  return !at.ip.is_loopback() && !at.ip.is_unspecified() && !is_link_local(at.ip) && !is_bridge(at.interface);
}

template <class Bytes>
bool same_bits(const Bytes& one, const Bytes& other, unsigned bits) {
  for (unsigned i = 0; i < bits; ++i)
    if (((one[i / 8] ^ other[i / 8]) >> (7 - i % 8)) & 1) return false;
  return true;
}

std::string list_of(const std::vector<NetworkAddress>& all) {
  std::string text;
  for (const auto& at : all)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", at.interface, at.ip.to_string());
  return text.empty() ? "none" : text;
}

// The first that `suits`; the family by which rank 0 was reached comes first, others may lack the second.
template <class Suits>
const NetworkAddress* first(const std::vector<NetworkAddress>& all, const Situation& situation, Suits suits) {
  const NetworkAddress* other = nullptr;
  for (const auto& at : all) {
    if (!suits(at)) continue;
    if (!situation.control || at.ip.is_v4() == situation.control->is_v4()) return &at;
    if (!other) other = &at;
  }
  return other;
}

Choice unrestricted(const std::vector<NetworkAddress>& all, const Situation& situation) {
  const auto control = std::find_if(all.begin(), all.end(), [&](const auto& at) {
    return situation.control && at.ip == *situation.control;
  });
  const bool loopback = !situation.control || situation.control->is_loopback();
  if (loopback && !situation.one_machine)
    if (const auto* usable = first(all, situation, is_usable))
      return {*usable, "rank 0 is on this machine, and this comes first of what other machines can reach"};
  const std::string reached = "from here rank 0 is reached";
  if (control != all.end()) return {*control, reached};
  // 127.0.1.1 is on no list, but is there.
  if (situation.control) return {{loopback ? "lo" : "?", *situation.control}, reached};
  const auto* local = first(all, situation, [](const auto& at) { return at.ip.is_loopback(); });
  return {local ? *local : NetworkAddress{"lo", asio::ip::address_v4::loopback()},
          "all ranks are on this machine"};
}

}  // namespace

bool InterfaceList::Item::covers(const address& ip) const {
  if (!net || net->is_v4() != ip.is_v4()) return false;
  return ip.is_v4() ? same_bits(net->to_v4().to_bytes(), ip.to_v4().to_bytes(), bits)
                    : same_bits(net->to_v6().to_bytes(), ip.to_v6().to_bytes(), bits);
}

Result<InterfaceList::Item> InterfaceList::parse_item(std::string_view text) {
  const auto refused = [text](std::string_view why) {
    return Error{ErrorCode::invalid_argument, fmt::format("\"{}\" {}: {}", text, why, allowed_items)};
  };
  if (text.empty()) return refused("is an empty item");
  if (text.find_first_of(" \t\r\n\v\f") != text.npos) return refused("has a space in it");
  if (text.find_first_of("^=") != text.npos) return refused("has a ^ or = in it");
  const size_t slash = text.find('/');
  asio::error_code error;
  const address ip = asio::ip::make_address(std::string(text.substr(0, slash)), error);
  if (error && slash == text.npos) return Item{std::string(text), std::nullopt, 0};
  const unsigned most = ip.is_v4() ? 32 : 128;
  unsigned bits = most;
  if (slash != text.npos && !error) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (bad != std::errc() || end != digits.data() + digits.size() || bits > most) error = asio::error::fault;
  }
  if (error) return refused("is no network");
  return Item{{}, ip, bits};
}

Result<InterfaceList> InterfaceList::parse(std::string_view text) {
  InterfaceList list;
  if (text.empty()) return list;
  std::string_view rest = text;
  const auto take = [&](char mark) {
    const bool there = rest.starts_with(mark);
    if (there) rest.remove_prefix(1);
    return there;
  };
  list.excludes_ = take('^');
  list.exact_ = take('=');
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    auto item = parse_item(rest.substr(0, comma));
    if (!item) return wrong(text, item.error().message);
    list.items_.push_back(std::move(*item));
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return list;
}

bool InterfaceList::names_address(const NetworkAddress& at) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) { return item.covers(at.ip); });
}

bool InterfaceList::allows(const NetworkAddress& at) const {
  if (items_.empty()) return true;
  const bool named = std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return !item.net && (exact_ ? at.interface == item.name : at.interface.starts_with(item.name));
  });
  return (named || names_address(at)) != excludes_;
}

Result<Choice> choose_address(const std::vector<NetworkAddress>& all, std::string_view text,
                              const Situation& situation) {
  const auto list = InterfaceList::parse(text);
  if (!list) return list.error();
  const Choice own = unrestricted(all, situation);
  if (list->allows(own)) return own;
  const std::string by_list = fmt::format("RONDO_INTERFACE={}", text);
  if (const auto* found =
          first(all, situation, [&](const auto& at) { return is_usable(at) && list->allows(at); }))
    return Choice{*found, by_list};
  // Whoever names docker0 or lo shall have it; a link-local address must be named itself.
  const auto asked_for = [&](const NetworkAddress& at) {
    return list->allows(at) && (!is_link_local(at.ip) || list->names_address(at));
  };
  if (!list->excludes())
    if (const auto* found = first(all, situation, asked_for)) return Choice{*found, by_list};
  return wrong(text, fmt::format("allows no address of this machine; it has {}", list_of(all)));
}

std::vector<NetworkAddress> machine_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<NetworkAddress> found;
  for (const ifaddrs* item = list; item; item = item->ifa_next) {
    if (!item->ifa_addr || !(item->ifa_flags & IFF_UP)) continue;
    const int family = item->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const size_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    found.push_back({item->ifa_name, ip_of(Address(item->ifa_addr, size))});
  }
  return found;
}

}  // namespace rondo::bootstrap
