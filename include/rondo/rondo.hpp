// Everything a trainer needs.
#pragma once
#include "rondo/communicator.hpp"
#include "rondo/memory.hpp"
#include "rondo/narrow_floats.hpp"
#include "rondo/options.hpp"
#include "rondo/result.hpp"
#include "rondo/types.hpp"
#include "rondo/work.hpp"
