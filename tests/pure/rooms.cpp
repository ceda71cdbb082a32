// Who may include whom. The rooms of the source tree depend on each other in one direction only, and only
// src/base reads the environment.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

using Prefixes = std::vector<std::string>;

struct Room {
  std::string path;     // files whose path begins so; the first room that fits counts
  Prefixes may;         // what a quoted include may begin with
  Prefixes never = {};  // exceptions from `may`, and system headers it must not use
};

const Prefixes impure{"asio",
                      "chrono",
                      "thread",
                      "mutex",
                      "atomic",
                      "condition_variable",
                      "cstdlib",
                      "fstream",
                      "sys/",
                      "unistd.h",
                      "random",
                      "poll.h",
                      "time.h",
                      "ctime",
                      "netinet/",
                      "base/clock.hpp",
                      "base/descriptor.hpp",
                      "base/environment.hpp",
                      "base/log.hpp"};

const std::vector<Room> rooms{
    {"include/rondo/", {"rondo/"}},
    {"src/base/", {"base/", "rondo/"}},
    {"src/schedule/", {"schedule/", "rondo/types.hpp", "base/"}, impure},
    {"kernels/", {"kernels/", "base/", "rondo/"}},
    {"transport/", {"transport/", "base/", "rondo/"}},
    {"src/engine/", {"engine/", "schedule/", "transport/link.hpp", "kernels/reducer.hpp", "base/", "rondo/"}},
    {"src/bootstrap/", {"bootstrap/", "transport/", "base/", "rondo/"}},
    {"src/communicator/",
     {"communicator/", "bootstrap/", "engine/", "schedule/", "transport/", "kernels/", "base/", "rondo/"}},
    {"src/c_api/", {"c_api/", "rondo/"}},
    {"src/data_parallel/", {"data_parallel/", "rondo/"}},
    {"src/cli/explain.", {"cli/", "schedule/", "rondo/"}},
    // What is selected, and the table of it.
    {"src/cli/explain_selection.", {"cli/", "engine/", "schedule/", "base/", "rondo/"}},
    {"src/cli/tune.", {"cli/", "engine/", "schedule/", "base/", "rondo/"}},
    // Judges what the rooms below will make of a machine.
    {"src/cli/doctor/", {"cli/", "engine/tuning.hpp", "bootstrap/", "transport/shm/", "base/", "rondo/"}},
    // The launcher makes the environment that bootstrap reads.
    {"src/cli/rank_environment.", {"cli/", "rondo/", "base/", "bootstrap/"}},
    {"src/cli/supervisor.", {"cli/", "rondo/", "base/", "bootstrap/"}},
    {"src/cli/", {"cli/", "rondo/", "base/"}},
    {"src/plot/", {"plot.hpp"}},
    {"examples/",
     {""},
     {"base/", "schedule/", "engine/", "bootstrap/", "communicator/", "cli/", "transport/", "kernels/"}},
};

bool begins_with_any(const std::string& text, const Prefixes& prefixes) {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) { return text.starts_with(prefix); });
}

// The complaints about one file. `path` is relative to the source tree.
std::vector<std::string> complaints(const std::string& path, std::istream& text) {
  std::vector<std::string> found;
  const auto room = std::ranges::find_if(rooms, [&](const Room& r) { return path.starts_with(r.path); });
  if (room == rooms.end()) return {path + " belongs to no room"};
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string word, name;
    words >> word;
    if (word == "#") words >> word;
    if ((word == "#include" || word == "include") && words >> name) {
      const bool quoted = name[0] == '"';
      name = name.substr(1, name.find_last_of("\">") - 1);
      if ((quoted && !begins_with_any(name, room->may)) || begins_with_any(name, room->never))
        found.push_back(fmt::format("{} must not include {}", path, name));
    }
    if (line.find("getenv") != std::string::npos && !path.starts_with("src/base/"))
      found.push_back(path + " reads the environment");
  }
  return found;
}

std::vector<std::string> complaints(const std::string& path, const std::string& text) {
  std::istringstream stream(text);
  return complaints(path, stream);
}

}  // namespace

TEST_CASE("rooms: every include of the source tree follows the arrows, and only src/base calls getenv") {
  const fs::path root = RONDO_SOURCE_ROOT;
  size_t files = 0;
  for (const char* top : {"include", "src", "kernels", "transport", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string kind = entry.path().extension().string();
      if (kind != ".hpp" && kind != ".cpp" && kind != ".h" && kind != ".c" && kind != ".cu" && kind != ".cuh")
        continue;
      std::ifstream text(entry.path());
      REQUIRE(text.good());
      for (const std::string& complaint : complaints(fs::relative(entry.path(), root).generic_string(), text))
        FAIL_CHECK(complaint);
      files++;
    }
  }
  CHECK(files > 20);
}

TEST_CASE("rooms: a wrong include, a look at the clock and a getenv are noticed") {
  CHECK(complaints("src/schedule/ring.cpp", "#include \"engine/run.hpp\"\n").size() == 1);
  CHECK(complaints("src/schedule/ring.cpp", "#include \"rondo/communicator.hpp\"\n").size() == 1);
  CHECK(complaints("src/schedule/ring.cpp", "#include <chrono>\n#include <vector>\n").size() == 1);
  CHECK(complaints("src/schedule/ring.cpp", "#include \"base/clock.hpp\"\n").size() == 1);
  CHECK(complaints("transport/tcp/tcp.cpp", "#include \"kernels/reducer.hpp\"\n").size() == 1);
  CHECK(complaints("kernels/host.cpp", "# include \"schedule/step.hpp\"\n").size() == 1);
  CHECK(complaints("src/engine/engine.cpp", "#include \"transport/tcp/tcp.hpp\"\n").size() == 1);
  CHECK(complaints("src/engine/engine.cpp", "#include \"transport/link.hpp\"\n").empty());
  CHECK(complaints("src/bootstrap/join.cpp", "#include \"schedule/step.hpp\"\n").size() == 1);
  CHECK(complaints("src/cli/run.cpp", "#include \"schedule/print.hpp\"\n").size() == 1);
  CHECK(complaints("src/cli/explain.cpp", "#include \"schedule/print.hpp\"\n").empty());
  CHECK(complaints("examples/trainer/main.cpp", "#include \"base/log.hpp\"\n").size() == 1);
  CHECK(complaints("examples/trainer/main.cpp", "#include \"model.hpp\"\n#include \"rondo/rondo.hpp\"\n")
            .empty());
  CHECK(complaints("kernels/host.cpp", "  auto* p = std::getenv(\"X\");\n").size() == 1);
  CHECK(complaints("src/base/environment.cpp", "  auto* p = std::getenv(name);\n").empty());
  CHECK(complaints("src/new_room/a.cpp", "").size() == 1);
}
