// What the pages of docs/ quote is what is in the files, and what they link to is there.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kSource = GPUNN_SOURCE_DIR;

std::string content(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

struct Quotation {
  std::string file;  // "examples/..."
  std::string text;  // whole lines
};

// Fences behind a line <!-- file: PATH -->.
std::vector<Quotation> quotations(const std::string& page) {
  std::vector<Quotation> result;
  std::istringstream lines(page);
  const std::string mark = "<!-- file: ";
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(mark, 0) != 0) continue;
    Quotation quotation{line.substr(mark.size(), line.find(" -->") - mark.size()), ""};
    std::getline(lines, line);
    REQUIRE(line.rfind("```", 0) == 0);
    while (std::getline(lines, line) && line.rfind("```", 0) != 0) quotation.text += line + "\n";
    REQUIRE(line == "```");
    result.push_back(quotation);
  }
  return result;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> result{kSource / "README.md"};
  for (const auto& entry : fs::directory_iterator(kSource / "docs")) {
    if (entry.path().extension() == ".md") result.push_back(entry.path());
  }
  return result;
}

}  // namespace

TEST_CASE("code that a page quotes is the code", "[docs]") {
  int found = 0;
  for (const fs::path& page : pages()) {
    for (const Quotation& quotation : quotations(content(page))) {
      INFO(page.filename().string() << " quotes " << quotation.file << ":\n" << quotation.text);
      const std::string file = "\n" + content(kSource / quotation.file);
      CHECK_FALSE(quotation.text.empty());
      CHECK(file.find("\n" + quotation.text) != std::string::npos);
      ++found;
    }
  }
  CHECK(found >= 5);
}

TEST_CASE("files that a page links to are there", "[docs]") {
  const std::regex link(R"(\]\(([^)#:\s]+)(#[^)]*)?\))");
  for (const fs::path& page : pages()) {
    const std::string text = content(page);
    for (std::sregex_iterator i(text.begin(), text.end(), link), end; i != end; ++i) {
      INFO(page.filename().string() << " links to " << (*i)[1].str());
      CHECK(fs::exists(page.parent_path() / (*i)[1].str()));
    }
  }
}
