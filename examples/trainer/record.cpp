#include "record.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "json_lines.hpp"

namespace trainer {

rondo::Result<void> record(const std::string& path, uint64_t step, const Share& share) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < share.micro_batches; i++) count += share.sequences_of(i).count;
  return add_line(path, {{"step", step + 1},
                         {"ranks", share.world},
                         {"rank", share.rank},
                         {"first", share.sequences_of(0).first},
                         {"count", count}});
}

}  // namespace trainer
