// rondo doctor with real processes: exit codes, output, limits that are really too low, and the state of running
// processes, played by listeners of this test.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "../skip.hpp"
#include "../text.hpp"
#include "bootstrap/socket.hpp"
#include "command.hpp"

using namespace rondo::test;

namespace {

using Words = std::vector<std::string>;
using nlohmann::json;

Words doctor(const Words& more) {
  Words words{RONDO_EXE, "doctor"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Ended shell(const std::string& script) { return run({"/bin/sh", "-c", script}, {}, 60); }

// The worst finding of a check.
json finding(const Ended& ended, const std::string& check) {
  const std::vector<std::string> order{"ok", "note", "warning", "problem"};
  const auto badness = [&](const json& entry) {
    return std::ranges::find(order, entry.at("severity").get<std::string>());
  };
  json worst;
  const json all = json::parse(ended.out);
  for (const json& entry : all.at("findings"))
    if (entry.at("check") == check && (worst.is_null() || badness(entry) > badness(worst))) worst = entry;
  REQUIRE_MESSAGE(!worst.is_null(), ended.out);
  return worst;
}

// SIGSTOP reaches a thread when it is next scheduled, on a busy machine after kill() has long returned.
bool is_stopped(pid_t pid) {
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    std::ifstream status(thread.path() / "status");
    std::string line;
    while (std::getline(status, line) && !line.starts_with("State:")) {
    }
    if (!has(line, "T (stopped)")) return false;
  }
  return true;
}

// Listens as a process with this number would; `answer` gets every connection, one after the other.
class Listener {
 public:
  Listener(pid_t pid, std::function<void(int)> answer)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::string name = fmt::format("rondo-state-{}", pid);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket_.get(), 4) == 0);
    thread_ = std::thread([this, answer] {
      for (;;) {
        const rondo::Descriptor peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!peer) return;
        answer(peer.get());
      }
    });
  }
  ~Listener() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  rondo::Descriptor socket_;
  std::thread thread_;
};

void say(int socket, const std::string& text) {
  CHECK(::send(socket, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size()));
}

const Words ask_me = doctor({"--pid", std::to_string(::getpid())});

}  // namespace

TEST_CASE("doctor: a machine that passes these tests has no problem, and nothing stays behind") {
  const auto before = shared_places();
  Command command(doctor({}));
  const Ended ended = command.wait();
  CAPTURE(ended.out);
  CHECK(ended.code == 0);
  CHECK(ended.err == "");
  CHECK(has(ended.out, "peer copies"));
  CHECK(last_line(ended.out).starts_with("rondo doctor: "));
  CHECK_FALSE(has(ended.out, "problem "));
  CHECK(command.alive().empty());
  CHECK(shared_places() == before);
}

TEST_CASE("doctor: JSON has every finding, and what was found out; no secret is shown") {
  const Ended ended = run(doctor({"--json", "-n", "2"}), {"RONDO_SECRET=very-secret", "RONDO_TIMEOUT=5"});
  CHECK(ended.code == 0);
  CHECK_FALSE(has(ended.out, "very-secret"));
  const json all = json::parse(ended.out);
  CHECK(all.at("findings").size() >= 14);
  for (const json& entry : all.at("findings")) {
    CHECK(entry.at("severity").is_string());
    CHECK_FALSE(entry.at("what").get<std::string>().empty());
    CHECK(entry.at("fix").get<std::string>().empty() == (entry.at("severity") == "ok"));
  }
  CHECK(all.at("machine").at("variables").at("RONDO_TIMEOUT") == "5");
  CHECK(all.at("machine").at("cores").at("usable") == int(std::thread::hardware_concurrency()));
}

TEST_CASE("doctor: wrong usage is 2") {
  for (const Words& words : std::vector<Words>{{"-n", "0"},
                                               {"-n", "x"},
                                               {"--root", "nowhere"},
                                               {"--pid", "x"},
                                               {"--pid", "1", "-n", "2"},
                                               {"--pid", "1", "--json"},
                                               {"--what"}}) {
    const Ended ended = run(doctor(words));
    CHECK(ended.code == 2);
    CHECK(ended.out + ended.err != "");
  }
}

TEST_CASE("doctor: 64 descriptors are too few for 32 ranks; as many as it asks for are enough") {
  const std::string limited = "ulimit -n {}; exec " RONDO_EXE " {}";
  const Ended few = shell(fmt::format(fmt::runtime(limited), 64, "doctor -n 32 --json"));
  CHECK(few.code == 1);
  const json found = finding(few, "descriptors");
  CHECK(found.at("severity") == "problem");
  CHECK(has(found.at("what"), "ulimit -n is 64; 32 ranks need about 112"));
  CHECK(has(found.at("fix"), "64"));  // a hard limit, too
  CHECK(shell(fmt::format(fmt::runtime(limited), 64, "run -n 32 -- true")).code != 0);
  for (const char* transport : {"tcp", "shm"}) {
    const Ended enough = shell(fmt::format(
        fmt::runtime(limited), 40,
        fmt::format("bench all_reduce -n 8 -e 8 --iterations 3 --warmup 1 --transport {}", transport)));
    CHECK_MESSAGE(enough.code == 0, enough.err);
  }
  CHECK(shell(fmt::format(fmt::runtime(limited), 40, "doctor -n 8")).code == 0);
}

TEST_CASE("doctor: variables that are wrong, and shared memory that a limit of files forbids") {
  const Ended wrong = run(doctor({"--json"}), {"RONDO_TRANSPORT=carrier"});
  CHECK(wrong.code == 1);
  CHECK(has(finding(wrong, "environment").at("what"), "RONDO_TRANSPORT=carrier"));
  const Ended limited = shell("ulimit -f 1; exec " RONDO_EXE " doctor --json");
  CHECK(finding(limited, "file size").at("severity") == "warning");
  CHECK(finding(limited, "peer copies").at("severity") == "warning");
  CHECK(has(finding(limited, "peer copies").at("what"), "memfd_create"));
}

TEST_CASE("doctor: TLS with a secret is right, and so it is inside a job") {
  const Ended alone = run(doctor({"--json"}), {"RONDO_SECRET=x", "RONDO_TLS=1"});
  CHECK_MESSAGE(alone.code == 0, alone.out);
  CHECK(finding(alone, "environment").at("severity") == "note");  // of the variable by which Command finds it
  CHECK_FALSE(has(finding(alone, "environment").at("what"), "TLS"));
  const Ended inside =
      run({RONDO_EXE, "run", "-n", "2", "--", RONDO_EXE, "doctor", "-n", "2"}, {"RONDO_TLS=1"});
  CHECK_MESSAGE(inside.code == 0, inside.out);
  const Ended outside = run(doctor({"--json", "-n", "2"}), {"RONDO_TLS=1"});
  CHECK(outside.code == 0);  // rondo run, above, makes a secret
  CHECK(finding(outside, "environment").at("severity") == "warning");
  const Ended rank =
      run(doctor({"--json"}), {"RONDO_TLS=1", "RONDO_RANK=0", "RONDO_WORLD=2", "RONDO_ROOT=unix:@a"});
  CHECK(rank.code == 1);
}

TEST_CASE("doctor: ports that somebody holds") {
  const auto held = rondo::bootstrap::listen_on_loopback();
  REQUIRE(held);
  const std::string port =
      std::to_string(rondo::bootstrap::port_of(rondo::bootstrap::local_address(held->get())));
  const Ended ports = run(doctor({"--json", "-n", "2"}), {"RONDO_PORTS=" + port});
  CHECK(ports.code == 1);
  CHECK(has(finding(ports, "ports").at("what"), "0 of 1 free; not " + port));
  const Ended root = run(doctor({"--json", "--root", "127.0.0.1:" + port}));
  CHECK(root.code == 1);
  CHECK(has(finding(root, "root").at("what"), "something listens there already"));
  const Ended nobody = run(doctor({"--json", "--root", "no-such-host.invalid:29500"}), {}, 30);
  CHECK(nobody.code == 1);
  CHECK(has(finding(nobody, "root").at("what"), "no-such-host.invalid cannot be resolved"));
  CHECK(nobody.seconds < 8);
}

TEST_CASE("doctor: a network namespace with nothing but docker0, and no secret for another machine") {
  if (::geteuid() != 0 || run({"unshare", "-n", "true"}).code != 0) SKIP_TEST("needs network namespaces");
  const Ended ended =
      run({"unshare", "-n", "/bin/sh", "-c",
           "ip link set lo up; ip link add docker0 type bridge; ip addr add 172.30.0.1/24 dev docker0; "
           "ip link set docker0 up; exec " RONDO_EXE " doctor --json --root 172.31.0.1:29500"});
  if (!has(ended.out, "docker0")) SKIP_TEST("needs ip and bridges");
  CHECK(ended.code == 1);
  CHECK(finding(ended, "interfaces").at("severity") == "warning");
  CHECK(has(finding(ended, "interfaces").at("what"), "only docker0 (172.30.0.1)"));
  CHECK(finding(ended, "root").at("severity") == "problem");
  CHECK(has(finding(ended, "root").at("what"), "Network is unreachable"));
}

TEST_CASE("doctor --pid: prints what the process says, in however many pieces it comes") {
  const std::string state = json{{"rank", 3}, {"text", std::string(300'000, 'x')}}.dump();
  const Listener listener(::getpid(), [&](int socket) {
    say(socket, state.substr(0, 5));
    ::usleep(50'000);
    say(socket, state.substr(5));
  });
  const Ended ended = run(ask_me);
  CHECK(ended.code == 0);
  CHECK(ended.out == state + "\n");
}

TEST_CASE("doctor --pid: a rank at work tells what it does; once it is stopped, two seconds are enough") {
  Command job({RONDO_EXE, "run", "-n", "2", "--", "/bin/sh", "-c",
               "exec " RONDO_EXE " bench all_reduce -e 8 --iterations 10000000"});
  pid_t rank = -1;
  for (int attempt = 0; attempt < 100 && rank < 0; ++attempt, ::usleep(50'000))
    for (const pid_t pid : job.alive()) {
      const Ended asked = run(doctor({"--pid", std::to_string(pid)}));
      if (asked.code != 0) continue;  // the launcher, or they have not joined yet
      rank = pid;
      const json state = json::parse(asked.out);
      CHECK(state.at("pid") == pid);
      CHECK(state.at("communicators").at(0).at("world") == 2);
    }
  REQUIRE(rank > 0);
  const Ended explained = run({RONDO_EXE, "explain", "--pid", std::to_string(rank)});
  CHECK(explained.code == 0);
  CHECK(has(explained.out, "interface  127.0.0.1:"));
  CHECK(has(explained.out, " of 2, communicator "));
  CHECK(has(explained.out, ": interface lo: "));
  CHECK(has(explained.out, "transport  shm: all ranks see each other's memory"));
  CHECK(has(explained.out, "encryption none: the data stay in this machine's memory"));
  CHECK(has(explained.out, "algorithm  the model's choice for 2 ranks over shm, "));
  CHECK(has(explained.out, "last call  "));
  ::kill(rank, SIGSTOP);
  for (int attempt = 0; attempt < 1000 && !is_stopped(rank); ++attempt) ::usleep(5000);
  const Ended stopped = run(doctor({"--pid", std::to_string(rank)}));
  ::kill(rank, SIGCONT);
  CHECK(stopped.code == 1);
  CHECK(has(stopped.err, "has not answered in time"));
  CHECK(stopped.seconds < 4);
}

TEST_CASE("explain --pid: says what TLS means for the data of a job") {
  const auto encryption = [](const std::string& tls, const std::string& transport) {
    Command job({RONDO_EXE, "run", "-n", "2", "--", RONDO_EXE, "bench", "all_reduce", "-e", "8",
                 "--iterations", "10000000"},
                {"RONDO_TLS=" + tls, "RONDO_TRANSPORT=" + transport});
    for (int attempt = 0; attempt < 100; ++attempt, ::usleep(50'000))
      for (const pid_t pid : job.alive())
        if (const Ended asked = run({RONDO_EXE, "explain", "--pid", std::to_string(pid)}); asked.code == 0)
          return asked.out;
    return std::string();
  };
  CHECK(has(encryption("1", "tcp"), "encryption TLS 1.3 on every TCP connection (RONDO_TLS=1)"));
  CHECK(has(encryption("0", "tcp"), "encryption none: what the ranks send can be read and altered"));
  CHECK(has(encryption("1", "shm"),
            "encryption none of the data, which stay in this machine's memory; TLS 1.3"));
}

TEST_CASE("explain --pid: a communicator that has failed says why") {
  const json failure{{"code", "peer_lost"}, {"message", "rank 1 is gone"}, {"peer", 1}};
  const json communicator{{"rank", 0},
                          {"world", 2},
                          {"epoch", "1"},
                          {"transport", "shm"},
                          {"tls", false},
                          {"transport_reason", "-"},
                          {"address", "-"},
                          {"nodes", {0, 0}},
                          {"address_reason", "-"},
                          {"cores", 2},
                          {"algorithm", "auto"},
                          {"tuning", ""},
                          {"failure", failure},
                          {"operations", json::array()}};
  const Listener listener(::getpid(), [&](int socket) {
    say(socket, json{{"communicators", json::array({communicator})}}.dump());
  });
  const Ended ended = run({RONDO_EXE, "explain", "--pid", std::to_string(::getpid())});
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "failed     peer_lost: rank 1 is gone"));
}

TEST_CASE("doctor --pid: no process, not Rondo's, and those that do not answer rightly") {
  SUBCASE("no such process") {
    const pid_t gone = ::fork();
    if (gone == 0) ::_exit(0);
    ::waitpid(gone, nullptr, 0);
    const Ended ended = run(doctor({"--pid", std::to_string(gone)}));
    CHECK(ended.code == 1);
    CHECK(ended.out == "");
    CHECK(ended.err == fmt::format("rondo doctor: there is no process {}\n", gone));
  }
  SUBCASE("another program") {
    const Ended ended = run(ask_me);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, "does not answer as a Rondo process"));
  }
  SUBCASE("it hangs up: another user's") {
    const Listener listener(::getpid(), [](int) {});
    const Ended ended = run(ask_me);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, fmt::format("refuses to answer user {}: it is of user {}", ::getuid(), ::getuid())));
  }
  SUBCASE("what it says is not JSON") {
    const Listener listener(::getpid(), [](int socket) { say(socket, "{\"rank\": "); });
    const Ended ended = run(ask_me);
    CHECK(ended.code == 1);
    CHECK(ended.out == "");
    CHECK(has(ended.err, "not JSON"));
  }
  SUBCASE("it stops in the middle: two seconds") {
    const Listener listener(::getpid(), [](int socket) {
      say(socket, "{}");
      char end;
      CHECK(::read(socket, &end, 1) == 0);  // the other end has given up
    });
    const Ended ended = run(ask_me);
    CHECK(ended.code == 1);
    CHECK(has(ended.err, "has not answered in time (2 bytes came)"));
    CHECK(ended.seconds >= 1.9);
    CHECK(ended.seconds < 4);
  }
  SUBCASE("its name is held by another process") {
    const Command other({"/bin/sleep", "60"});
    const Listener listener(other.pid(), [](int socket) { ::send(socket, "{}", 2, MSG_NOSIGNAL); });
    const Ended ended = run(doctor({"--pid", std::to_string(other.pid())}));
    CHECK(ended.code == 1);
    CHECK(ended.out == "");
    CHECK(
        has(ended.err, fmt::format("process {} answers in the name of process {}", ::getpid(), other.pid())));
  }
  SUBCASE("another network namespace") {
    if (::geteuid() != 0 || run({"unshare", "-n", "true"}).code != 0) SKIP_TEST("needs network namespaces");
    Command other({"unshare", "-n", "/bin/sh", "-c", "echo ready; exec sleep 60"});
    REQUIRE(other.wait_for_output("ready"));
    const Ended ended = run(doctor({"--pid", std::to_string(other.pid())}));
    CHECK(ended.code == 1);
    CHECK(has(ended.err, fmt::format("nsenter -t {} -n rondo doctor", other.pid())));
  }
}
