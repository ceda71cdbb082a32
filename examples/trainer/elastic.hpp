// Going on when ranks are lost. After a failure those that are left shrink the communicator and start anew in it, each
// with what it has learned. That is the same everywhere, or can be made so:
//
//   - A rank changes its state only after the all-reduces of a step, all of them, have ended well there; nothing that
//     communicates comes between the first change and the last. So whoever is alive stands after a whole
//     number of steps.
//   - An all-reduce ends well nowhere before every rank has called it. When one ends well for step k, all ranks
//     have called it, so all have done step k - 1. So after a failure some ranks stand at k - 1, others at k; never is one
//     further apart.
//
//         rank 0   step k | its all-reduces end well | update |  step k + 1 | error         at k
//         rank 1   step k | error: rank 2 died before it had sent its last part             at k - 1
//         rank 2   step k | x
//
//   - Those at k hold the same bits, as do those at k - 1. So the lowest rank of those at k sends its state to all, and
//     the others take it over. If nobody is left at k, step k has been done nowhere, and all do it again: with the same
//     sequences, which depend on the step alone, dealt to fewer ranks.
//   - Who receives a state keeps its own until the whole of it is there. So if a rank is lost meanwhile, each again stands
//     at k - 1 or k, and the same remedy is right once more.
//
// At the start of each life, digests of the state are compared, so that a flaw in this argument would be seen.
//
// Newcomers are taken in between two steps, when all stand at the same one, and are given a state in the same way, as those
// that have none yet. A rank that has not been given any, or has never compared its own with the others', does not survive
// a loss: alone, it would begin another training.
//
// A rank that was stopped may wake when the others, having gone on without it, have ended. It finds nobody then and becomes
// rank 0 of a training of its own. Only the log tells it of theirs: the ranks that one life lost to another do not write.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report.hpp"
#include "rondo/communicator.hpp"
#include "state.hpp"

namespace trainer {

/// Whether the ranks that are left may go on after an error of a collective operation.
bool survivable(const rondo::Error& error);

/// Collective. Brings all ranks to where the furthest is of those that have begun, with what that one's report has noted.
rondo::Result<void> catch_up(rondo::Communicator& communicator, State& state, Report& report);

/// Of a rank that would go on with the log: an error if the training has gone on without it, or if another training has
/// written there; else whether the results are there. Its own steps and notes, and the numbers of ranks of the shrunk
/// communicators that it was in, tell which lines it has a part in. The log may have a step more, which only the former
/// rank 0 has ended, and may tell of a shrink that failed here.
rondo::Result<bool> finished_with_us(const Logged& log, const std::string& path, uint64_t steps,
                                     uint64_t all_steps, const std::vector<Note>& notes,
                                     std::span<const uint32_t> worlds);

/// Collective. How many newcomers to take in, or 0: the number in the file at `path` of rank 0, which is then removed.
/// So is what is no number, with a warning; an empty file is one that is being written.
rondo::Result<uint32_t> wanted_newcomers(rondo::Communicator& communicator, const std::string& path);
/// Collective. Whether they are in the communicator now; otherwise it is what it was, and rank 0 says why.
bool take_in(rondo::Communicator& communicator, uint32_t newcomers);

}  // namespace trainer
