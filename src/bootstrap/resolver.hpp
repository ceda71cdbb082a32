// Host names to addresses without ever blocking the service thread.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/service.hpp"
#include "bootstrap/socket.hpp"

namespace rondo::bootstrap {

using Resolved = std::function<void(Result<std::vector<Address>>)>;

bool is_numeric(const std::string& host);
/// Calls `done` on the service thread, never from within. A name is looked up by a thread of its own that
/// nobody waits for: a name server that does not answer cannot be interrupted, and must delay neither
/// deadlines nor ends.
void resolve(std::shared_ptr<Service> service, const std::string& host, uint16_t port, Resolved done);

}  // namespace rondo::bootstrap
