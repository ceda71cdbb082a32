// TLS on a connection whose two sides have proven the job's secret to each other (handshake.hpp). A stranger, who
// cannot, never comes as far as this, and so never speaks to OpenSSL.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "bootstrap/socket.hpp"

namespace rondo::bootstrap {

/// Service thread. Gives the socket a TLS session and calls `done`, at once or later, with why it failed, if it did.
/// `done` keeps the socket alive; whoever closes the socket meanwhile is not called.
void secure(Socket& socket, tls::Side side, const tls::Key& key,
            std::function<void(const std::optional<std::string>& why)> done);

}  // namespace rondo::bootstrap
