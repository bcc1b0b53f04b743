// What the pages of docs/ quote is what is in the files, and what they link to is there.
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
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
  std::vector<fs::path> result;
  const auto add = [&](const fs::directory_entry& entry) {
    if (entry.path().extension() == ".md") result.push_back(entry.path());
  };
  for (const char* folder : {".", ".github"}) {
    for (const auto& entry : fs::directory_iterator(kSource / folder)) add(entry);
  }
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs")) add(entry);
  return result;
}

// The page without its code, which may look like a link or a heading.
std::string prose(const std::string& page) {
  std::istringstream lines(page);
  std::string result;
  bool fenced = false;
  for (std::string line; std::getline(lines, line);) {
    const bool fence = line.rfind("```", 0) == 0;
    if (fence) fenced = !fenced;
    if (!fence && !fenced && line.rfind("    ", 0) != 0) result += line + "\n";
  }
  return result;
}

// The anchor that hosting sites give a heading: small letters, digits, "-" and "_"; a space becomes "-".
std::string anchor_of(const std::string& heading) {
  std::string result;
  for (const unsigned char c : heading) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c >= 0x80) result += static_cast<char>(std::tolower(c));
    if (c == ' ') result += '-';
  }
  return result;
}

std::set<std::string> anchors_of(const std::string& page) {
  static const std::regex heading(R"((?:^|\n)#+ +([^\n]+))");
  const std::string text = prose(page);
  std::set<std::string> result;
  for (std::sregex_iterator i(text.begin(), text.end(), heading), end; i != end; ++i) {
    result.insert(anchor_of((*i)[1].str()));
  }
  return result;
}

// Targets of links and pictures, in Markdown and in HTML: "PATH", "PATH#ANCHOR" or "#ANCHOR".
std::vector<std::string> relative_links(const std::string& page) {
  static const std::regex link(R"re(\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"\s]+)")re");
  const std::string text = prose(page);
  std::vector<std::string> result;
  for (std::sregex_iterator i(text.begin(), text.end(), link), end; i != end; ++i) {
    const std::string target = (*i)[1].matched ? (*i)[1].str() : (*i)[2].str();
    if (target.find("://") == std::string::npos && target.rfind("mailto:", 0) != 0) result.push_back(target);
  }
  return result;
}

// Whether the line is wider than 100 columns though it could end at a space within them. `code` stays in one piece.
bool is_too_wide(const std::string& line) {
  constexpr int kMost = 100;
  int column = 0, words = 0;
  bool code = false, breaks = false;
  char before = ' ';
  for (const char c : line) {
    if (c == '`') code = !code;
    if (c == ' ' && before != ' ' && !code && column <= kMost) breaks = ++words > 1;  // the first may mark a list
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++column;
    before = c;
  }
  return column > kMost && breaks;
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

TEST_CASE("files and headings that a page links to are there", "[docs]") {
  std::size_t found = 0, anchors = 0;
  for (const fs::path& page : pages()) {
    const std::string text = content(page);
    for (const std::string& link : relative_links(text)) {
      const std::size_t hash = link.find('#');
      const std::string path = link.substr(0, hash);
      const fs::path target = path.empty() ? page : page.parent_path() / path;
      INFO(page.lexically_relative(kSource).string() << " links to " << link);
      CHECK(fs::exists(target));
      ++found;
      if (hash == std::string::npos) continue;
      CHECK(anchors_of(content(target)).count(link.substr(hash + 1)) == 1);
      ++anchors;
    }
  }
  CHECK(found >= 40);
  CHECK(anchors >= 3);
}

TEST_CASE("prose is at most 100 columns wide", "[docs]") {
  for (const fs::path& page : pages()) {
    std::istringstream lines(prose(content(page)));
    for (std::string line; std::getline(lines, line);) {
      const bool is_prose =
          line.find_first_of("|#<") != line.find_first_not_of(" ") && line.find("](") == std::string::npos;
      INFO(page.lexically_relative(kSource).string() << ": " << line);
      CHECK_FALSE((is_prose && is_too_wide(line)));
    }
  }
  CHECK(is_too_wide(std::string(90, 'a') + " b " + std::string(9, 'c')));
  CHECK_FALSE(is_too_wide(std::string(90, 'a') + " b " + std::string(7, 'c')));
  CHECK_FALSE(is_too_wide("- `" + std::string(100, ' ') + "` c"));
}

TEST_CASE("a heading's anchor is what hosting sites make of it", "[docs]") {
  CHECK(anchor_of("Where to begin for ...") == "where-to-begin-for-");
  CHECK(anchor_of("Progress and Ctrl-C") == "progress-and-ctrl-c");
  CHECK(anchor_of("`cuda_tiled` on an NVIDIA H200, 2026-11-22") == "cuda_tiled-on-an-nvidia-h200-2026-11-22");
  CHECK(anchors_of("# One\n```\n# no heading\n```\n## Two *words*\n") == std::set<std::string>{"one", "two-words"});
  CHECK(relative_links("[a](b.md#c) <img src=\"d.svg\"> [e](https://f)\n    [code](g)\n") ==
        std::vector<std::string>{"b.md#c", "d.svg"});
}
