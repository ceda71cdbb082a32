// Programs outside this tree: Rondo is installed into a folder, the folder is moved, and the programs that README.md and
// docs/c.md show are built against it and run.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../skip.hpp"
#include "command.hpp"

namespace fs = std::filesystem;
using namespace rondo::test;

namespace {

const bool is_sanitized = RONDO_SANITIZERS != std::string("none");
const std::string average = "[0] the average over 2 ranks is 0.5\n";

// The first block of a page that is marked as of this language.
std::string block_of(const std::string& page, const std::string& language) {
  std::ifstream file(RONDO_SOURCE_ROOT "/" + page);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string mark = "\n```" + language + "\n";
  const size_t begin = text.find(mark), end = text.find("\n```\n", begin + mark.size());
  REQUIRE_MESSAGE((begin != text.npos && end != text.npos), page << " has no block in " << language);
  return text.substr(begin + mark.size(), end + 1 - begin - mark.size());
}

// An installation, and beside it a folder to build in; gone afterwards.
class Consumer {
 public:
  Consumer() {
    REQUIRE(::mkdtemp(path_.data()));
    const std::string first = path_ + "/first", moved = path_ + "/moved";
    ok({"meson", "install", "-C", RONDO_BUILD_ROOT, "--no-rebuild", "--quiet", "--destdir", first});
    fs::rename(first, moved);
    write("mine.c", block_of("docs/c.md", "c"));
    write("mine.cpp", block_of("README.md", "cpp"));
  }
  ~Consumer() { fs::remove_all(path_); }
  Consumer(const Consumer&) = delete;

  std::string prefix() const { return path_ + "/moved" RONDO_PREFIX; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  void ok(const std::vector<std::string>& words) const {
    const auto ended =
        run(words,
            {"PKG_CONFIG_SYSROOT_DIR=" + path_ + "/moved",
             "PKG_CONFIG_PATH=" + prefix() + "/" RONDO_LIBDIR "/pkgconfig", "CC=" RONDO_CC, "CXX=" RONDO_CXX},
            120);
    REQUIRE_MESSAGE(ended.code == 0, words.front() << ": " << ended.out << ended.err);
  }
  // With the launcher that was installed.
  void check_average(const std::string& program) const {
    const auto ended = run({prefix() + "/bin/rondo", "run", "-n", "2", "--", path(program)},
                           {"LD_LIBRARY_PATH=" + prefix() + "/" RONDO_LIBDIR}, 60);
    CHECK_MESSAGE(ended.code == 0, ended.err);
    CHECK(ended.out == average);
  }

 private:
  std::string path_ = fs::temp_directory_path() / "rondo-test-consumer-XXXXXX";
};

bool has(const std::string& program) { return run({"/bin/sh", "-c", "command -v " + program}).code == 0; }

}  // namespace

TEST_CASE("consumers: a C and a C++ program build with pkg-config and run") {
  if (is_sanitized) SKIP_TEST("a library with sanitizers is not for other programs");
  if (!has("pkg-config")) SKIP_TEST("pkg-config is not installed");
  const Consumer consumer;
  const std::string flags = " $(pkg-config --cflags --libs rondo) -o ";
  consumer.ok({"/bin/sh", "-c",
               RONDO_CC " -std=c99 -Wall -Wextra -Wpedantic -Werror " + consumer.path("mine.c") + flags +
                   consumer.path("in_c")});
  consumer.ok({"/bin/sh", "-c",
               RONDO_CXX " -std=c++20 -Wall -Wextra -Werror " + consumer.path("mine.cpp") + flags +
                   consumer.path("in_cpp")});
  consumer.check_average("in_c");
  consumer.check_average("in_cpp");
}

// With an allocator of its own, and asio before any standard header.
const char* const coroutine = R"cpp(
#include <rondo/asio.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <rondo/rondo.hpp>

  void* operator new(std::size_t bytes) {
    if (auto* memory = static_cast<char*>(std::malloc(bytes + 64))) return memory + 64;
    throw std::bad_alloc();
  }
  void operator delete(void* memory) noexcept {
    if (memory != nullptr) std::free(static_cast<char*>(memory) - 64);
  }
  void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

  asio::awaitable<void> average(rondo::AsioCommunicator ranks, rondo::Rank rank) {
    float mean = float(rank);
    for (int turn = 0; turn < 100; turn++)
      if (auto done = co_await ranks.async_all_reduce(std::span(&mean, 1), rondo::Reduction::avg,
                                                      asio::use_awaitable);
          !done)
        std::puts(done.error().message.c_str());
    if (rank == 0) std::printf("the average over 2 ranks is %g\n", mean);
  }

  int main() {
    auto communicator = rondo::Communicator::from_environment();
    if (!communicator) return 1;
    asio::io_context context;
    asio::co_spawn(context, average(rondo::AsioCommunicator(*communicator), communicator->rank()),
                   [](std::exception_ptr) {});
    context.run();
  }
)cpp";

TEST_CASE("consumers: a program with coroutines and an asio of its own") {
  if (is_sanitized) SKIP_TEST("a library with sanitizers is not for other programs");
  if (!has("pkg-config")) SKIP_TEST("pkg-config is not installed");
  if (std::string(RONDO_CXX).find("clang") != std::string::npos)
    SKIP_TEST("clang needs to be told of coroutines");
  const Consumer consumer;
  consumer.write("mine.cpp", coroutine);
  consumer.ok({"/bin/sh", "-c",
               RONDO_CXX " -std=c++20 -DASIO_STANDALONE " + consumer.path("mine.cpp") +
                   " $(pkg-config --cflags --libs rondo) -o " + consumer.path("mine")});
  consumer.check_average("mine");
}

TEST_CASE("consumers: in a Meson subproject there is the library, and nothing else to build") {
  const Consumer consumer;
  consumer.write(
      "meson.build",
      "project('mine', 'cpp', default_options: ['cpp_std=c++20'])\n"
      "executable('mine', 'mine.cpp', dependencies: subproject('rondo').get_variable('rondo_dep'))\n");
  fs::create_directory(consumer.path("subprojects"));
  fs::create_directory_symlink(RONDO_SOURCE_ROOT, consumer.path("subprojects/rondo"));
  consumer.ok({"meson", "setup", consumer.path("build"), consumer.path(".")});
  const auto targets = run({"ninja", "-C", consumer.path("build"), "-t", "targets", "all"});
  CHECK(targets.out.find("librondo.a: ") != std::string::npos);
  for (const char* other : {"subprojects/rondo/rondo:", "test_", "trainer", "01_hello"})
    CHECK_MESSAGE(targets.out.find(other) == std::string::npos, std::string(other));
}

TEST_CASE("consumers: a C and a C++ program build with CMake and run") {
  if (is_sanitized) SKIP_TEST("a library with sanitizers is not for other programs");
  if (!has("cmake")) SKIP_TEST("cmake is not installed (tools/setup --dev does)");
  const Consumer consumer;
  const std::string in_c = block_of("docs/c.md", "cmake");
  for (const std::string language : {"C", "CXX"}) {
    CAPTURE(language);
    std::string lists = in_c;
    if (language == "CXX") {
      lists.replace(lists.find("mine C)"), 7, "mine CXX)");
      lists.replace(lists.find("mine.c)"), 7, "mine.cpp)");
    }
    consumer.write("CMakeLists.txt", lists);
    const std::string build = consumer.path("build-" + language);
    consumer.ok({"cmake", "-G", "Ninja", "-S", consumer.path(""), "-B", build,
                 "-DCMAKE_PREFIX_PATH=" + consumer.prefix()});
    consumer.ok({"cmake", "--build", build});
    consumer.check_average("build-" + language + "/mine");
  }
}
