// What a rank tells the others of its calls, from its flight recorder.
#pragma once
#include "bootstrap/report.hpp"
#include "engine/recorder.hpp"

namespace rondo {

/// Which call this is for all ranks that take part; `peer`: where it does not get on with it.
bootstrap::CallKey key_of(const engine::Record& record, Rank rank, std::optional<Rank> peer);
/// Any thread.
bootstrap::Account account_of(const engine::Recorder& recorder, Rank rank, const bootstrap::CallKey& key);

}  // namespace rondo
