// Tests that documentation names: they exist, so that no name can rot.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::smatch> all(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), {}};
}

// The test cases of a source; a long name may be several literals, one after another.
void add_cases(const std::string& source, Names& cases) {
  static const std::regex test(R"re(TEST_CASE(?:_TEMPLATE)?\(\s*("[^"]*"(?:\s*"[^"]*")*))re"),
      join("\"\\s*\"");
  for (const std::smatch& found : all(source, test)) {
    const std::string name = std::regex_replace(found[1].str(), join, "");
    cases.insert(name.substr(1, name.size() - 2));
  }
}

struct Page {
  Names paragraphs;       // **Like this.** at the begin of a line
  Names rows, tests;      // of the table under "## The tests"
  Names rows_with_tests;  // at least one each
};

Page read(const std::string& text) {
  static const std::regex paragraph(R"((?:^|\n)\*\*([^*]*?)\.?\*\*)"), row(R"(\n\| ([^|\n]*?) \|([^\n]*)\|)"),
      name("`([^`]*)`");
  Page page;
  const size_t table = text.find("\n## The tests\n");
  REQUIRE(table != std::string::npos);
  const std::string above = text.substr(0, table), below = text.substr(table);
  for (const std::smatch& found : all(above, paragraph)) page.paragraphs.insert(found[1]);
  for (const std::smatch& found : all(below, row)) {
    if (found[1] == "What") continue;
    page.rows.insert(found[1]);
    const std::string tests = found[2];
    for (const std::smatch& test : all(tests, name)) {
      page.tests.insert(test[1]);
      page.rows_with_tests.insert(found[1]);
    }
  }
  return page;
}

std::vector<std::string> complaints(const Page& page, const Names& cases) {
  std::vector<std::string> found;
  for (const std::string& test : page.tests)
    if (cases.count(test) == 0) found.push_back("there is no test \"" + test + "\"");
  for (const std::string& paragraph : page.paragraphs)
    if (page.rows.count(paragraph) == 0) found.push_back("no tests are named for \"" + paragraph + "\"");
  for (const std::string& row : page.rows)
    if (page.rows_with_tests.count(row) == 0) found.push_back("\"" + row + "\" names none");
  return found;
}

}  // namespace

TEST_CASE("docs/numerics.md names tests for every paragraph, and all of them exist") {
  Names cases;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(RONDO_SOURCE_ROOT) / "tests"))
    if (entry.path().extension() == ".cpp") add_cases(text_of(entry.path()), cases);
  CHECK(cases.size() > 300);
  const Page page = read(text_of(fs::path(RONDO_SOURCE_ROOT) / "docs" / "numerics.md"));
  CHECK(page.paragraphs.size() >= 13);
  CHECK(page.tests.size() > 30);
  for (const std::string& complaint : complaints(page, cases)) FAIL_CHECK(complaint);
}

TEST_CASE("named tests: a name that is wrong and a paragraph that is left out are noticed") {
  Names cases;
  add_cases(
      "TEST_CASE(\"one: a\") {}\nTEST_CASE(\n    \"two: \"\n    \"b\") {}\nTEST_CASE_TEMPLATE(\"three\", T, "
      "int)",
      cases);
  CHECK(cases == Names{"one: a", "two: b", "three"});
  const std::string text = "**Zeros.** Text.\n\n**NaN** on any rank\n";
  const auto with = [&](const std::string& rows) {
    return complaints(read(text + "\n## The tests\n\n| What | Tests |\n|---|---|\n" + rows), cases);
  };
  CHECK(with("| Zeros | `one: a`, `two: b` |\n| NaN | `three` |\n").empty());
  CHECK(with("| Zeros | `one: b` |\n| NaN | `three` |\n") ==
        std::vector<std::string>{"there is no test \"one: b\""});
  CHECK(with("| Zeros | `one: a` |\n").size() == 1);
  CHECK(with("| Zeros | `one: a` |\n| NaN | |\n").size() == 1);
}
