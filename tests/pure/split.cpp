// Who is in which part of a communicator, in which order, and how its place to meet is told.
#include "communicator/split.hpp"

#include <doctest/doctest.h>

namespace rondo {

TEST_CASE("split: the ranks of one color, by key and then by old rank") {
  const std::vector<Choice> choices{choice_of(7, 5),  choice_of(1, -3), choice_of(std::nullopt, 0),
                                    choice_of(7, -9), choice_of(7, 5),  choice_of(0, 0)};
  const Part seven = part_of(choices, 4);
  CHECK(seven.members == std::vector<Rank>{3, 0, 4});
  CHECK(seven.rank == 2);
  CHECK(part_of(choices, 3).rank == 0);
  CHECK(part_of(choices, 1).members == std::vector<Rank>{1});
  CHECK(part_of(choices, 5).members == std::vector<Rank>{5});  // color 0 is not "no color"
}

TEST_CASE("split: an invitation carries root and tag, or why there is none") {
  bootstrap::Meeting meeting;
  meeting.root = "a-host.example:45000";
  meeting.tag = 0xfeedface12345678;
  const auto accepted = accept(invitation_to(meeting), 3);
  REQUIRE(accepted.ok());
  CHECK(accepted->root == meeting.root);
  CHECK(accepted->tag == meeting.tag);

  const auto refused = accept(invitation_to(Error{ErrorCode::system, std::string(1000, 'x')}), 3);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::system);
  CHECK(refused.error().peer == 3u);
  CHECK(refused.error().message.find("rank 3 cannot listen") != std::string::npos);
  CHECK(refused.error().message.find(std::string(311, 'x')) != std::string::npos);

  meeting.root = std::string(312, 'h');  // longer than any host name
  CHECK(!accept(invitation_to(meeting), 0).ok());
}

TEST_CASE("split: an invitation without a root that can be dialled is the error of who sent it") {
  Invitation invitation{9, {}};
  for (const std::string_view root : {"", "nowhere", "host:", "host:70000"}) {
    invitation.text.fill('\0');
    root.copy(invitation.text.data(), root.size());
    const auto refused = accept(invitation, 3);
    REQUIRE(!refused.ok());
    CHECK(refused.error().peer == 3u);
  }
  invitation.text.fill('1');  // no zero at its end
  std::string_view("file:/").copy(invitation.text.data(), 6);
  CHECK(!accept(invitation, 3).ok());
}

TEST_CASE("split: why a part could not be made is told in the ranks of the parent, and says so") {
  const std::vector<Rank> members{3, 2};
  const Error named = as_parent_sees({ErrorCode::timeout, "rank 1 of 2 did not join", 1u}, members);
  CHECK(named.code == ErrorCode::timeout);
  CHECK(named.peer == 2u);
  CHECK(named.message ==
        "in the new communicator of ranks 3, 2: rank 1 of 2 did not join; its rank 1 is rank 2 here");
  const Error nobody = as_parent_sees({ErrorCode::system, "no socket"}, members);
  CHECK_FALSE(nobody.peer.has_value());
  CHECK(nobody.message == "in the new communicator of ranks 3, 2: no socket");
  const Error many = as_parent_sees({ErrorCode::system, "x", 63u}, std::vector<Rank>(64, 5));
  CHECK(many.message.find("5, 5, ...: x") != std::string::npos);
  CHECK(many.message.size() < 150);
}

}  // namespace rondo
