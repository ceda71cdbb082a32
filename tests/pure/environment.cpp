#include "base/environment.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/advertised.hpp"
#include "base/clock.hpp"
#include "base/root_address.hpp"
#include "base/text_file.hpp"
#include "variables.hpp"

using namespace rondo;
using namespace rondo::test;
using std::chrono::milliseconds;

namespace {

// A world of two that is complete; `changes` replaces variables.
Result<Options> with(Variables changes, const Options& in_code = {}) {
  Variables all{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  for (auto& [name, value] : changes) all[name] = value;
  return resolve(in_code, fake(all));
}

// The error must say which variable, its value, and one word of what is allowed.
void check_refused(Variables changes, std::initializer_list<const char*> words) {
  const auto options = with(changes);
  REQUIRE_FALSE(options.ok());
  CHECK(options.error().code == ErrorCode::invalid_argument);
  for (const char* word : words) {
    CAPTURE(options.error().message);
    CHECK(options.error().message.find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("environment: torchrun's variables are enough, and its agent keeps its port") {
  const auto options = with({});
  REQUIRE(options.ok());
  CHECK(options->rank == 1u);
  CHECK(options->world == 2u);
  CHECK(options->root == "127.0.0.1:29501");
  CHECK(options->transport == "auto");
  CHECK(options->algorithm == "auto");
  CHECK(options->init_timeout == milliseconds(60'000));
  CHECK(options->timeout == milliseconds(300'000));
  CHECK(with({{"MASTER_ADDR", "fd00::2"}})->root == "[fd00::2]:29501");
}

TEST_CASE("environment: with wrong settings it can still be known where and who this rank is") {
  const auto left_of = [](Variables more, const Options& in_code = {}) {
    Variables all{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"RONDO_ROOT", "unix:@a"}, {"RONDO_SECRET", "s"}};
    for (auto& [name, value] : more) all[name] = value;
    REQUIRE_FALSE(resolve(in_code, fake(all)).ok());
    return essential(in_code, fake(all));
  };
  for (const Variables& wrong : {Variables{{"RONDO_PORTS", "9-1"}},
                                 {{"RONDO_TIMEOUT", "soon"}},
                                 {{"RONDO_TLS", "x"}},
                                 {{"RONDO_LISTEN", "x"}, {"RONDO_TLS", "x"}}}) {
    CAPTURE(wrong.begin()->first);
    const auto left = left_of(wrong);
    REQUIRE(left);
    CHECK(left->rank == 1u);
    CHECK(left->world == 2u);
    CHECK(left->root == "unix:@a");
    CHECK(left->secret == "s");
    CHECK(left->tls.has_value() == !wrong.contains("RONDO_TLS"));
  }
  CHECK(left_of({{"RONDO_PORTS", "9-1"}, {"RONDO_TLS", "1"}})->tls == true);
  Options in_code;
  in_code.rank = 0;
  in_code.root = "unix:@b";
  in_code.transport = "pigeon";
  const auto left = left_of({}, in_code);
  REQUIRE(left);
  CHECK(left->rank == 0u);
  CHECK(left->root == "unix:@b");
  CHECK(left->transport == "auto");
  // Nobody can be told.
  for (const Variables& wrong : {Variables{{"RANK", "2"}},
                                 {{"RONDO_ROOT", "nowhere"}},
                                 {{"RONDO_SECRET_FILE", "/no"}, {"RONDO_SECRET", ""}}})
    CHECK_FALSE(left_of(wrong));
}

TEST_CASE("environment: code wins over RONDO_*, RONDO_* wins over the launcher") {
  const Variables both{{"RONDO_RANK", "2"},         {"RONDO_WORLD", "3"},
                       {"RONDO_ROOT", "unix:@job"}, {"RONDO_INIT_TIMEOUT", "0.25"},
                       {"RONDO_TIMEOUT", "7"},      {"RONDO_SECRET", "s"}};
  const auto from_rondo = with(both);
  REQUIRE(from_rondo.ok());
  CHECK(from_rondo->rank == 2u);
  CHECK(from_rondo->world == 3u);
  CHECK(from_rondo->root == "unix:@job");
  CHECK(from_rondo->init_timeout == milliseconds(250));
  CHECK(from_rondo->timeout == milliseconds(7000));
  CHECK(from_rondo->secret == "s");

  Options in_code;
  in_code.rank = 4;
  in_code.world = 5;
  in_code.root = "file:/tmp/root";
  in_code.init_timeout = milliseconds(1);
  in_code.secret = "t";
  Variables bad = both;
  bad["RONDO_RANK"] = "not even read";
  const auto from_code = with(bad, in_code);
  REQUIRE(from_code.ok());
  CHECK(from_code->rank == 4u);
  CHECK(from_code->root == "file:/tmp/root");
  CHECK(from_code->init_timeout == milliseconds(1));
  CHECK(from_code->timeout == milliseconds(7000));
  CHECK(from_code->secret == "t");
}

TEST_CASE("environment: reproducible sums for all calls") {
  CHECK(with({{"RONDO_REPRODUCIBLE", "1"}})->reproducible == true);
  CHECK(with({{"RONDO_REPRODUCIBLE", "0"}})->reproducible == false);
  CHECK_FALSE(with({})->reproducible.has_value());
  check_refused({{"RONDO_REPRODUCIBLE", "yes"}}, {"RONDO_REPRODUCIBLE=yes", "0 to 1"});
}

TEST_CASE("environment: a world of one needs no root") {
  const auto options = resolve({}, fake({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  REQUIRE(options.ok());
  CHECK(options->root.empty());
}

TEST_CASE("environment: every bad value names its variable, its value and what is allowed") {
  check_refused({{"RONDO_WORLD", "0"}}, {"RONDO_WORLD=0", "from 1 to"});
  check_refused({{"WORLD_SIZE", "two"}}, {"WORLD_SIZE=two", "whole number"});
  check_refused({{"WORLD_SIZE", "99999999999"}}, {"WORLD_SIZE=99999999999"});
  check_refused({{"RANK", "2"}}, {"RANK=2", "WORLD_SIZE=2", "below"});
  check_refused({{"RANK", "-1"}}, {"RANK=-1"});
  check_refused({{"RONDO_RANK", "1x"}}, {"RONDO_RANK=1x"});
  for (const char* value : {"abc", "-3", "0", "nan", "inf", "1e9", "3s", " 3"}) {
    check_refused({{"RONDO_INIT_TIMEOUT", value}}, {"RONDO_INIT_TIMEOUT=", value, "seconds"});
    check_refused({{"RONDO_TIMEOUT", value}}, {"RONDO_TIMEOUT=", value, "seconds"});
  }
  check_refused({{"RONDO_HEARTBEAT", "-3"}}, {"RONDO_HEARTBEAT=-3", "0, for never"});
  check_refused({{"RONDO_TRANSPORT", "foo"}}, {"RONDO_TRANSPORT=foo", "auto", "tcp"});
  check_refused({{"RONDO_ALGORITHM", "foo"}}, {"RONDO_ALGORITHM=foo", "auto", "ring", "direct", "one_shot"});
  check_refused({{"RONDO_TLS", "yes"}, {"RONDO_SECRET", "s"}}, {"RONDO_TLS=yes", "0 to 1"});
  check_refused({{"RONDO_TLS", "1"}}, {"RONDO_TLS=1", "set RONDO_SECRET"});
  for (const char* value : {"gateway", "gateway:1", "0.0.0.0", "[::]", "10.0.0.5:", "10.0.0.5:0",
                            "10.0.0.5:65536", "[10.0.0.5]", "[fd00::1", "fd00::1]", "10.0.0", "unix:@x"})
    check_refused({{"RONDO_ADVERTISE", value}, {"RONDO_PORTS", "45000"}, {"RONDO_SECRET", "s"}},
                  {"RONDO_ADVERTISE=", value, "numeric address"});
  check_refused({{"RONDO_ADVERTISE", "10.0.0.5"}}, {"RONDO_ADVERTISE=10.0.0.5", "set RONDO_SECRET"});
  check_refused({{"RONDO_ADVERTISE", "10.0.0.5:9000"}, {"RONDO_SECRET", "s"}},
                {"RONDO_ADVERTISE=10.0.0.5:9000", "RONDO_PORTS"});
  check_refused(
      {{"RONDO_ADVERTISE", "10.0.0.5:65530"}, {"RONDO_PORTS", "45000-45010"}, {"RONDO_SECRET", "s"}},
      {"RONDO_ADVERTISE=10.0.0.5:65530", "65535"});
  for (const char* value : {"29700", "host:29700", "0.0.0.0", "unix:@x", ":29700"})
    check_refused({{"RONDO_LISTEN", value}}, {"RONDO_LISTEN=", value, "0.0.0.0:29700"});
  check_refused({{"RONDO_LISTEN", "0.0.0.0:1"}, {"RONDO_ROOT", "unix:@x"}, {"RANK", "0"}},
                {"RONDO_LISTEN=0.0.0.0:1", "unix:@x"});
  check_refused({{"RONDO_PORTS", "9-1"}}, {"RONDO_PORTS=9-1", "45000-45010"});
  check_refused({{"RONDO_ROOT", "nowhere"}}, {"RONDO_ROOT=nowhere", "host:port", "unix:@name", "file:/path"});
  check_refused({{"MASTER_PORT", "65535"}}, {"MASTER_PORT=65535"});
  check_refused({{"MASTER_PORT", ""}}, {"RONDO_ROOT", "MASTER_PORT", "not set"});
  check_refused({{"RANK", ""}}, {"RONDO_RANK", "not set"});
  check_refused({{"WORLD_SIZE", ""}}, {"RONDO_WORLD", "not set"});
  check_refused({{"RONDO_SECRET_FILE", "/nonexistent/secret"}},
                {"RONDO_SECRET_FILE=/nonexistent/secret", "No such file"});
  check_refused({{"RONDO_SECRET_FILE", "/"}}, {"RONDO_SECRET_FILE=/", "cannot be read"});
  check_refused({{"RONDO_SECRET_FILE", "/dev/null"}}, {"RONDO_SECRET_FILE=/dev/null", "empty"});
  check_refused({{"RONDO_SECRET_FILE", "/dev/zero"}}, {"RONDO_SECRET_FILE=/dev/zero", "longer"});
}

TEST_CASE("environment: TLS and the addresses of a translating network") {
  CHECK(with({{"RONDO_TLS", "1"}, {"RONDO_SECRET", "s"}})->tls == true);
  CHECK(with({{"RONDO_TLS", "0"}})->tls == false);
  CHECK_FALSE(with({})->tls.has_value());
  CHECK(with({{"RONDO_ADVERTISE", "127.0.0.1"}})->advertise == "127.0.0.1");
  CHECK(with({{"RONDO_LISTEN", "[::]:29700"}, {"RONDO_ROOT", "unix:@x"}})->listen == "[::]:29700");  // rank 1
  const PortRange ports{45000, 45010};
  for (const char* text : {"10.0.0.5", "fd00::5", "[fd00::5]"}) {
    const auto advertised = parse_advertised(text, {});
    REQUIRE(advertised.ok());
    CHECK((advertised->ip == "10.0.0.5" || advertised->ip == "fd00::5"));
    CHECK(advertised_port(*advertised, ports, 45003) == 45003);
  }
  for (const char* text : {"10.0.0.5:9000", "[fd00::5]:9000"}) {
    const auto advertised = parse_advertised(text, ports);
    REQUIRE(advertised.ok());
    CHECK(advertised_port(*advertised, ports, 45000) == 9000);
    CHECK(advertised_port(*advertised, ports, 45010) == 9010);
  }
}

TEST_CASE("environment: options in code are named as such") {
  Options options;
  options.rank = 3;
  options.world = 3;
  options.root = "127.0.0.1:1";
  CHECK(complete(options).error().message.find("Options::rank=3") != std::string::npos);
  options.rank = 2;
  CHECK(complete(options).ok());
  options.timeout = milliseconds(0);
  CHECK(complete(options).error().message.find("Options::timeout=0 ms") != std::string::npos);
  options.timeout.reset();
  options.node = 65536;
  CHECK(complete(options).error().message.find("Options::node=65536") != std::string::npos);
  options.node = 65535;
  CHECK(complete(options).ok());
  options.root.clear();
  CHECK(complete(options).error().message.find("RONDO_ROOT") != std::string::npos);
}

TEST_CASE("environment: the secret may come from a file, without its line end") {
  char path[] = "/tmp/rondo-test-secret-XXXXXX";
  ::close(::mkstemp(path));
  std::ofstream(path) << "long and random\n";
  const auto options = with({{"RONDO_SECRET_FILE", path}});
  ::unlink(path);
  REQUIRE(options.ok());
  CHECK(options->secret == "long and random");
}

TEST_CASE("environment: log levels") {
  CHECK(*log_level(fake({})) == log::Level::warn);
  CHECK(*log_level(fake({{"RONDO_LOG", "trace"}})) == log::Level::trace);
  const auto bad = log_level(fake({{"RONDO_LOG", "loud"}}));
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().message.find("RONDO_LOG=loud") != std::string::npos);
}

TEST_CASE("root address: three kinds, and what is not one") {
  CHECK(parse_root("node-1.lan:4444")->name == "node-1.lan");
  CHECK(parse_root("[::1]:4444")->name == "::1");
  CHECK(parse_root("[fe80::1%eth0]:4444")->port == 4444);
  CHECK(parse_root("unix:@a b")->kind == RootAddress::Kind::abstract_unix);
  CHECK(parse_root("file:/tmp/x")->name == "/tmp/x");
  for (const char* text : {"127.0.0.1:4444", "[::1]:1", "unix:@x", "file:/tmp/x"})
    CHECK(to_string(*parse_root(text)) == text);
  for (const char* text :
       {"", ":", "host", "host:", ":1", "host:0", "host:65536", "host:-1", "host:1x", "::1:4444", "[::1:4444",
        "[]:1", "unix:", "unix:@", "unix:/path", "file:", "file:relative"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_root(text).ok());
  }
  CHECK_FALSE(parse_root("unix:@" + std::string(108, 'x')).ok());
  CHECK(parse_root("unix:@" + std::string(107, 'x')).ok());
}

TEST_CASE("environment: a secret may come out of a pipe, late and in pieces") {
  char folder[] = "/tmp/rondo-test-pipe-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] {
    ::usleep(50'000);
    std::ofstream pipe(path);
    pipe << "half " << std::flush;
    ::usleep(50'000);
    pipe << "and half" << std::flush;
  });
  const auto text = read_text(path, 100);
  writer.join();
  std::filesystem::remove_all(folder);
  REQUIRE(text.ok());
  CHECK(*text == "half and half");
}

TEST_SUITE("slow: pipes") {
  TEST_CASE("environment: a pipe that nobody writes into is an error after 3 s") {
    char folder[] = "/tmp/rondo-test-pipe-XXXXXX";
    REQUIRE(::mkdtemp(folder) != nullptr);
    const std::string path = std::string(folder) + "/pipe";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const auto began = Clock::now();
    const auto text = read_text(path, 100);
    const auto took = Clock::now() - began;
    std::filesystem::remove_all(folder);
    REQUIRE(!text.ok());
    CHECK(text.error().message == "cannot be read: nothing has come out of it for 3 s");
    CHECK(took > std::chrono::milliseconds(2900));
    CHECK(took < std::chrono::milliseconds(4000));
  }
}
