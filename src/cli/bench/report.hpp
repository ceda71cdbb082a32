// The table and the JSON of `rondo bench`.
#pragma once
#include <cstdio>
#include <string_view>
#include <vector>

#include "cli/bench/measure.hpp"

namespace rondo::bench {

void print_head(const BenchOptions& options, uint32_t world, std::string_view transport);
/// One size: its out-of-place and in-place points, either of which may be missing.
void print_row(const BenchOptions& options, uint32_t world, const Row* out_of_place, const Row* in_place);
void print_foot(const BenchOptions& options, uint32_t world, const std::vector<Row>& rows);
Result<void> write_json(const BenchOptions& options, uint32_t world, std::string_view transport,
                        const std::vector<Row>& rows);

}  // namespace rondo::bench
