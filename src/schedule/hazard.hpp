// Buffer hazards: memory that is written while something else still uses it.
#pragma once
#include "schedule/program.hpp"

namespace rondo::schedule {

/// Proves that every write comes after everything that used the same memory, by nothing but the flow of data:
/// from writer to reader within a rank, from sender to receiver between ranks. A send's memory is free once
/// its receiver has consumed the message, so the write must be downstream of that receive:
///
///   rank 0   send input[1] . . . . . . . . . . . . . recv -> output[1]   in place: the memory of input[1]
///                 \                                  /
///   rank 1         recv_reduce input[1] --> ... --> send
///
/// Neither the order of a rank's list nor that of a link is used, so the proof holds for whatever order an
/// engine finds. Every path follows one chunk, so it holds when other chunks are empty and send nothing; and
/// segments of input and output never share memory, so windows, short ones too, cannot disturb each other
/// there. The accumulator is the exception: each window uses it again, and its first writer waits for the
/// window before (Why::recycled); that this waiting ends is shown with progress. Tokens of a barrier have no
/// memory: nothing to prove.
std::optional<Fault> hazard(const Program& program);

}  // namespace rondo::schedule
