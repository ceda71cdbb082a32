// What ranks tell each other when a communicator is split.
#include "communicator/split.hpp"

#include "base/root_address.hpp"
#include "input.hpp"

using namespace rondo;
using fuzz::require;

namespace {

void check_choices(fuzz::Input& input) {
  std::vector<Choice> choices(1 + input.value<uint8_t>() % 16);
  for (Choice& choice : choices) choice = input.value<Choice>();
  choices[0].taken = 1;  // one's own
  const Part part = part_of(choices, 0);
  require(part.rank < part.members.size() && part.members[part.rank] == 0, "a rank is in its own part");
  std::vector<bool> seen(choices.size());
  for (const Rank member : part.members) {
    require(member < choices.size() && !seen[member], "every member is a rank, and once");
    require(choices[member].taken && choices[member].color == choices[0].color, "and has chosen the part");
    seen[member] = true;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const auto invitation = input.value<Invitation>();
  if (const auto meeting = accept(invitation, 1)) {
    require(meeting->tag != 0, "a meeting has a tag");
    const auto root = parse_root(meeting->root);
    require(root.ok(), "a meeting has a root that can be dialled");
    require(parse_root(to_string(*root)).ok(), "and that can be said again");
    require(accept(invitation_to(meeting), 1)->root == meeting->root, "Invitation comes back");
  }
  check_choices(input);
  return 0;
}
