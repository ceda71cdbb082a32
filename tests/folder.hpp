// A folder of a test's own.
#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace rondo::test {

/// Gone, with all that is in it, at the end of its scope.
struct Folder {
  std::string path = std::filesystem::temp_directory_path() / "rondo-test-XXXXXX";
  Folder() { REQUIRE(::mkdtemp(path.data())); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
};

}  // namespace rondo::test
