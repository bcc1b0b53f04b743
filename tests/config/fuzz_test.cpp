// Random damage to good files: nothing but an Error may come of it.
#include <gpunn/error.hpp>

#include <random>

#include "catch.hpp"
#include "common/files.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

const std::vector<std::string> kSnippets = {"*a",
                                            "&a ",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            ": ",
                                            "- ",
                                            "\n",
                                            "\t",
                                            "\"",
                                            "'",
                                            "$",
                                            "${x",
                                            "!!x ",
                                            "|\n",
                                            ">\n",
                                            "? ",
                                            "---",
                                            "<<: ",
                                            "1e999",
                                            "-1",
                                            ".nan",
                                            "null",
                                            "~",
                                            "\xff",
                                            "%",
                                            "@",
                                            "repeat: 9999\n",
                                            "from: ",
                                            "layers:\n",
                                            "blocks:\n",
                                            "branch: ",
                                            "when: false\n",
                                            "choose: $stem\n",
                                            "first: {",
                                            "name: stage1",
                                            "$width",
                                            "0",
                                            "\\",
                                            "#",
                                            ","};

std::string damage(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return n == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  const std::size_t wounds = 1 + below(6);
  for (std::size_t i = 0; i < wounds; ++i) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, below(20));
    switch (below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(below(text.size() + 1), 1 + below(30)));
        break;
      case 2:
        text.insert(at, kSnippets[below(kSnippets.size())]);
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        text.replace(at, length, kSnippets[below(kSnippets.size())]);
        break;
    }
  }
  return text;
}

// A crash, a hang or a foreign exception fails the test by itself.
bool survives(const std::string& text) {
  try {
    const Experiment e = parse_experiment(text, "e.yaml");
    const std::string resolved = resolved_yaml(e);
    std::string again;
    try {
      again = resolved_yaml(parse_experiment(resolved, "r.yaml"));
    } catch (const Error& error) {
      FAIL_CHECK("resolved, it is refused: " << error.what() << "\n" << resolved);
    }
    CHECK(again == resolved);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("damaged experiments never crash the reader") {
  std::vector<std::string> seeds;
  for (const auto& entry : fs::directory_iterator(fs::path(GPUNN_SOURCE_DIR) / "experiments")) {
    if (entry.path().extension() != ".yaml") continue;
    seeds.push_back(resolved_yaml(load_experiment(entry.path())));
    seeds.push_back(read_text(entry.path()));
  }
  std::mt19937 random(7);
  int good = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = damage(seeds[static_cast<std::size_t>(i) % seeds.size()], random);
    INFO(text);
    good += survives(text) ? 1 : 0;
  }
  CHECK(good > 0);
  CHECK(good < 4000);
}

TEST_CASE("damaged models never crash the reader") {
  const TemporaryFolder folder;
  const fs::path experiment = folder.write("e.yaml", "model: m.yaml\ndata: points\n");
  std::vector<std::string> seeds;
  for (const auto& entry : fs::directory_iterator(fs::path(GPUNN_SOURCE_DIR) / "models")) {
    seeds.push_back(read_text(entry.path()));
  }
  std::mt19937 random(8);
  for (int i = 0; i < 4000; ++i) {
    const std::string text = damage(seeds[static_cast<std::size_t>(i) % seeds.size()], random);
    INFO(text);
    folder.write("m.yaml", text);
    try {
      const Experiment e = load_experiment(experiment);
      CHECK(e.model.layers.size() <= 10000);
    } catch (const Error&) {
      SUCCEED();
    }
  }
}
