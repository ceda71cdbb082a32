// At which of this machine's addresses a rank listens for its peers. Pure but for machine_addresses().
//
// By itself a rank takes the address from which it reached rank 0: the kernel's routes know which network
// leads to the other machines. Where that is loopback, because rank 0 is on this machine, and ranks of other
// machines may join, it takes the first address that those can use. RONDO_INTERFACE restricts the choice:
//
//   eth, ib0        interfaces whose names begin so        =eth0      exactly these names
//   ^lo,docker      all but these                          10.0.0.0/8, fd00::1   networks and addresses
#pragma once
#include <asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/result.hpp"

namespace rondo::bootstrap {

struct NetworkAddress {
  std::string interface;
  asio::ip::address ip;
};

class InterfaceList {
 public:
  /// Errors: invalid_argument, naming the item and what is allowed: one that is empty, has a space, ^ or = in it,
  /// or is a network that is none.
  static Result<InterfaceList> parse(std::string_view text);
  bool allows(const NetworkAddress& address) const;
  /// Whether the address as such is on the list, and not only its interface.
  bool names_address(const NetworkAddress& address) const;
  bool excludes() const noexcept { return excludes_; }

 private:
  struct Item {
    std::string name;                      // of an interface, or its beginning
    std::optional<asio::ip::address> net;  // instead of a name
    unsigned bits = 0;                     // that must be equal
    bool covers(const asio::ip::address& ip) const;
  };
  static Result<Item> parse_item(std::string_view text);
  std::vector<Item> items_;  // none: all are allowed
  bool excludes_ = false, exact_ = false;
};

struct Situation {
  std::optional<asio::ip::address> control;  // from where rank 0 was reached; none: over a Unix socket
  bool one_machine = false;                  // no rank can be anywhere else
};
struct Choice : NetworkAddress {
  std::string why;
};
/// Errors: invalid_argument: `list` is wrong or allows none of `all`, which the message then lists.
Result<Choice> choose_address(const std::vector<NetworkAddress>& all, std::string_view list,
                              const Situation& situation);

/// Of the interfaces that are up, in the kernel's order.
std::vector<NetworkAddress> machine_addresses();

}  // namespace rondo::bootstrap
