// What a rank tells the others of its calls, from its flight recorder.
#pragma once
#include "bootstrap/report.hpp"
#include "engine/recorder.hpp"

namespace rondo {

/// Which call this is for all ranks that take part; `peer`: where a send_recv does not get on with it.
bootstrap::CallKey key_of(const engine::Record& record, Rank rank, std::optional<Rank> peer);
/// Of a call that all ranks make, what `peer` sends to this one, if that is known to these two alone: worth
/// asking about where all agree on the call itself.
std::optional<bootstrap::CallKey> key_within(const engine::Record& record, Rank rank, Rank peer);
/// Any thread.
bootstrap::Account account_of(const engine::Recorder& recorder, Rank rank, const bootstrap::CallKey& key);

}  // namespace rondo
