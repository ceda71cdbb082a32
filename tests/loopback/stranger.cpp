// Whoever cannot prove the secret never disturbs a job.
#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "base/passing.hpp"
#include "base/random.hpp"
#include "bootstrap/dial.hpp"
#include "bootstrap/door.hpp"
#include "bootstrap/regroup.hpp"
#include "fleet.hpp"
#include "transport/shm/post.hpp"

using namespace rondo;
using namespace rondo::bootstrap;
using namespace rondo::test;

namespace {

const Credentials good{"the secret of this test"};

Bytes random_bytes(size_t count) {
  Bytes bytes(count);
  fill_random(bytes);
  return bytes;
}

// A job of two ranks whose rank 1 comes only after `visit`, so the root is open meanwhile.
void with_open_root(const Limits& limits, const std::function<void(const Address&)>& visit) {
  const std::string root = unix_root();
  Seat zero, one;
  std::thread rank_0([&] { join(zero, options_for(0, 2, root), limits); });
  const Address address = unix_address(root.substr(6));
  for (int i = 0; i < 500 && !Stranger(address).connected(); ++i)
    std::this_thread::sleep_for(milliseconds(2));
  visit(address);
  join(one, options_for(1, 2, root), limits);
  rank_0.join();
  CHECK(zero.job);
  CHECK(one.job);
  CHECK(one.took.count() < 2.0);
}

// A dial that is not a rank's; the failure it ends with.
std::optional<Dial::Failure> dial(const Address& address, const Credentials& credentials, Purpose purpose,
                                  const Claim& claim) {
  const auto service = Service::instance();
  std::promise<std::optional<Dial::Failure>> promise;
  Dial::start(service->context(), address, credentials, purpose, claim, deadline_after(milliseconds(5000)),
              [&](Socket socket, const std::optional<Dial::Failure>& failure) {
                asio::error_code ignored;
                socket.close(ignored);
                promise.set_value(failure);
              });
  return promise.get_future().get();
}

// A message with these descriptors, spread over as many control messages as there are groups.
void send_descriptors(int socket, const std::vector<std::vector<int>>& groups) {
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[2048] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  size_t used = 0;
  for (const auto& group : groups) {
    auto* header = reinterpret_cast<cmsghdr*>(control + used);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(group.size() * sizeof(int));
    std::copy(group.begin(), group.end(), reinterpret_cast<int*>(CMSG_DATA(header)));
    used += CMSG_SPACE(group.size() * sizeof(int));
  }
  message.msg_control = control;
  message.msg_controllen = used;
  REQUIRE(::sendmsg(socket, &message, MSG_NOSIGNAL) == 1);
}

}  // namespace

TEST_CASE("stranger: random bytes, silence and half a greeting do not disturb joining") {
  with_open_root({milliseconds(300), 64}, [](const Address& address) {
    Stranger silent(address), half(address), loud(address), gone(address);
    const Bytes hello = encode(Hello{});
    half.send(std::span(hello).first(30));
    const Bytes noise = random_bytes(1 << 20);
    loud.send(noise);
    const auto start = Clock::now();
    CHECK(loud.closed_by_peer());
    CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 0.25);
    CHECK(silent.closed_by_peer());
    CHECK(half.closed_by_peer());
    CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 1.0);
  });
}

TEST_CASE("stranger: a flood of silent connections cannot keep the real ranks out") {
  with_open_root({milliseconds(5000), 16}, [](const Address& address) {
    const auto before = open_descriptors().size();
    std::vector<std::unique_ptr<Stranger>> flood;
    for (int i = 0; i < 200; ++i) flood.push_back(std::make_unique<Stranger>(address));
    std::this_thread::sleep_for(milliseconds(100));
    // 200 ends of our own, and at most 16 on the side of rank 0.
    CHECK(open_descriptors().size() <= before + 200 + 16);
    static std::vector<std::unique_ptr<Stranger>> kept;  // they stay while the job comes up
    kept = std::move(flood);
  });
}

TEST_CASE("stranger: a wrong secret or version is refused at once, naming both sides, and the job goes on") {
  with_open_root({}, [](const Address& address) {
    const auto wrong = dial(address, {"another secret"}, Purpose::control, {0, 1, 0});
    REQUIRE(wrong);
    CHECK(wrong->error.code == ErrorCode::refused);
    CHECK(contains(wrong->error.message, "the secrets differ"));
    Credentials newer = good;
    newer.version = protocol_version + 1;
    const auto version = dial(address, newer, Purpose::control, {0, 1, 0});
    REQUIRE(version);
    CHECK(version->error.code == ErrorCode::refused);
    CHECK(contains(version->error.message, "other side speaks protocol " + std::to_string(protocol_version)));
    CHECK(contains(version->error.message, "this side protocol " + std::to_string(protocol_version + 1)));
    Credentials swapped = good;
    swapped.order = ByteOrder::big;
    CHECK(dial(address, swapped, Purpose::control, {0, 1, 0})->error.code == ErrorCode::refused);
  });
}

TEST_CASE("stranger: a rank with the wrong secret is told, and named by the others as missing") {
  const std::string root = unix_root();
  Options liar = options_for(1, 2, root, 20);
  liar.secret = "another secret";
  auto seats = join_all({options_for(0, 2, root, 1.0), liar});
  REQUIRE(seats[1].error);
  CHECK(seats[1].error->code == ErrorCode::refused);
  CHECK(contains(seats[1].error->message, "rank 1 (pid"));
  CHECK(contains(seats[1].error->message, "rank 0 at " + root));
  CHECK(seats[1].took.count() < 1.0);
  REQUIRE(seats[0].error);
  CHECK(seats[0].error->code == ErrorCode::timeout);
  CHECK(contains(seats[0].error->message, "rank 1 of 2 did not join"));
  CHECK(contains(seats[0].error->message, "refused for a wrong secret"));
}

TEST_CASE("stranger: a recorded proof is worth nothing, and a reflected one neither") {
  with_open_root({}, [](const Address& address) {
    // An honest handshake, as an eavesdropper would record it.
    DiallingSide honest(good, Purpose::control, {0, 1, 0});
    Bytes proof;
    {
      Stranger recorder(address);
      recorder.send(honest.hello());
      const Bytes hello = recorder.receive(hello_bytes);
      REQUIRE(hello.size() == hello_bytes);
      proof = *honest.proof(std::span(hello).first<hello_bytes>());
    }
    Stranger replay(address);
    replay.send(honest.hello());
    REQUIRE(replay.receive(hello_bytes).size() == hello_bytes);
    replay.send(proof);
    const Bytes answer = replay.receive(answer_bytes);
    REQUIRE(answer.size() == answer_bytes);
    CHECK(decode_answer(std::span(answer).first<answer_bytes>())->verdict == Verdict::wrong_secret);
    CHECK(replay.closed_by_peer());

    // Rank 0's own greeting, sent back to it by somebody who knows no secret: no proof can follow.
    Stranger first(address), second(address);
    first.send(honest.hello());
    const Bytes hello = first.receive(hello_bytes);
    second.send(hello);
    const Bytes other = second.receive(hello_bytes);
    REQUIRE(other.size() == hello_bytes);
    CHECK(other != hello);
    second.send(Bytes(proof_bytes));
    CHECK(second.closed_by_peer());
  });
}

TEST_CASE("stranger: an impostor in the place of rank 0 learns nothing and is named") {
  // It answers every greeting with the same greeting, and every proof with zeros.
  auto listener = listen_on_loopback();
  REQUIRE(listener.ok());
  const auto port = port_of(local_address(listener->get()));
  std::atomic<bool> stop = false;
  std::thread impostor([&] {
    AcceptingSide side({"not the secret"}, Purpose::control);
    while (!stop) {
      const Descriptor client = accept_from(listener->get());
      if (!client) {
        std::this_thread::sleep_for(milliseconds(2));
        continue;
      }
      std::array<std::byte, hello_bytes> hello;
      std::this_thread::sleep_for(milliseconds(20));
      if (::recv(client.get(), hello.data(), hello.size(), 0) != ssize_t(hello.size())) continue;
      const Bytes reply = side.hello(hello).send;
      ::send(client.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(milliseconds(20));
      const Bytes answer = side.answer(Verdict::welcome);
      ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  Seat seat;
  join(seat, options_for(1, 2, "127.0.0.1:" + std::to_string(port), 5));
  stop = true;
  impostor.join();
  REQUIRE(seat.error);
  CHECK(seat.error->code == ErrorCode::refused);
  CHECK(contains(seat.error->message, "did not prove"));
}

TEST_CASE("stranger: something else that listens at the root is waited out") {
  auto listener = listen_on_loopback();
  REQUIRE(listener.ok());
  const std::string root = to_text(local_address(listener->get()));
  std::atomic<bool> stop = false;
  std::thread web_server([&] {
    while (!stop) {
      const Descriptor client = accept_from(listener->get());
      const std::string text = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      if (client) ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(milliseconds(2));
    }
  });
  Seat seat;
  join(seat, options_for(1, 2, root, 0.6));
  stop = true;
  web_server.join();
  REQUIRE(seat.error);
  CHECK(seat.error->code == ErrorCode::timeout);
  CHECK(contains(seat.error->message, "rank 0 did not answer at " + root));
}

TEST_CASE("stranger: data listeners turn away noise, other jobs and ranks that must not dial") {
  std::vector<Options> options;
  const std::string root = unix_root();
  for (Rank rank = 0; rank < 3; ++rank) options.push_back(options_for(rank, 3, root));
  auto seats = join_all(options, {milliseconds(300), 8});
  for (Seat& seat : seats) REQUIRE(seat.job);
  const uint64_t epoch = seats[0].job->epoch();
  const auto listeners = tcp_listeners();
  CHECK(listeners.size() == 3);
  std::vector<std::unique_ptr<Stranger>> silent;
  for (const Address& address : listeners) {
    CHECK(is_local(address));
    Stranger(address).send(random_bytes(1 << 20));
    for (int i = 0; i < 50; ++i) silent.push_back(std::make_unique<Stranger>(address));
    CHECK(dial(address, {"another secret"}, Purpose::data, {epoch, 0, 0})->error.code == ErrorCode::refused);
    CHECK(dial(address, good, Purpose::data, {epoch + 1, 0, 0})->error.code == ErrorCode::peer_lost);
    CHECK(dial(address, good, Purpose::data, {epoch, 2, 0})->error.code == ErrorCode::peer_lost);
    CHECK(dial(address, good, Purpose::control, {epoch, 0, 0})->error.code == ErrorCode::peer_lost);
  }
  seats[2].job->connect(0, 0);
  seats[1].job->connect(2, 0);
  CHECK(seats[0].handler->socket({2, 0}) >= 0);
  CHECK(seats[2].handler->socket({0, 0}) >= 0);
  CHECK(seats[1].handler->socket({2, 0}) >= 0);
  CHECK(seats[2].handler->socket({1, 0}) >= 0);
  for (Seat& seat : seats) CHECK(seat.handler->failures() == 0);
}

TEST_CASE(
    "stranger: the door of a job that was left for its successor turns away data, and tells latecomers") {
  auto seats = up(3);
  const uint64_t epoch = seats[0].job->epoch(), successor = 77;
  std::vector<std::shared_ptr<bootstrap::FormerJob>> formers;
  for (Seat& seat : std::span(seats).first(2)) {
    formers.push_back(seat.job->keep_door());
    formers.back()->succeeded_by(successor);
    seat.job.reset();
  }
  CHECK(tcp_listeners().size() == 3);
  size_t refused = 0;
  for (const Address& address : tcp_listeners())
    refused += dial(address, good, Purpose::data, {epoch, 0, 0}).has_value();
  CHECK(refused == 2);  // rank 2 is still there
  const auto late = seats[2].job->regroup(0, deadline_after(milliseconds(3000)));
  REQUIRE(!late.ok());
  CHECK(late.error().code == ErrorCode::peer_lost);
  CHECK(late.error().peer == 0u);
  CHECK(contains(late.error().message, "has gone on in a new communicator without this rank, 2"));
  CHECK(!seats[2].job->regroup(successor + 1, deadline_after(milliseconds(3000))).ok());
  // It holds the successor and has only missed the news.
  const auto with = seats[2].job->regroup(successor, deadline_after(milliseconds(3000)));
  REQUIRE(with.ok());
  CHECK(with->gone_on);
  formers.clear();
  seats[2].job.reset();
  CHECK(tcp_listeners().empty());
}

TEST_CASE("stranger: descriptors sent to a mailbox are closed, however many came") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Descriptor stranger(ends[0]), mailbox(ends[1]);
  const int fd = stranger.get();
  const auto before = open_descriptors();
  std::byte scrap[8];
  for (const auto& groups : std::vector<std::vector<std::vector<int>>>{
           {{fd, fd}}, {{fd, fd, fd}}, {std::vector<int>(200, fd)}, {{fd}, {fd}}, {{fd, fd}, {fd}}}) {
    CAPTURE(groups.size());
    CAPTURE(groups[0].size());
    send_descriptors(fd, groups);
    const auto letter = shm::take_letter(mailbox.get(), scrap);
    REQUIRE(letter.has_value());
    CHECK_FALSE(letter->memory);
    CHECK(open_descriptors() == before);
  }
  // One is what a rank sends: with the letter, and gone with it, too long a letter or not.
  for (const size_t room : {8, 0}) {
    send_descriptors(fd, {{fd}});
    const auto letter = shm::take_letter(mailbox.get(), std::span(scrap).first(room));
    REQUIRE(letter.has_value());
    CHECK(letter->memory);
    CHECK(open_descriptors().size() == before.size() + 1);
  }
  CHECK(open_descriptors() == before);
}
