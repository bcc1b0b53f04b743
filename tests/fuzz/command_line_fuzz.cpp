// Command lines, an argument a line: parsed, explained where they are wrong, and not run.
#include <sstream>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/parser/suggest.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  std::vector<std::string> words;
  std::istringstream lines{std::string(gpunn::fuzz::text_of(data, bytes))};
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  gpunn::fuzz::expect_at_most_an_error([&] {
    gpunn::cli::CommandLine line;
    gpunn::cli::add_all(line);
    try {
      line.app->parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError&) {
      gpunn::cli::explain(*line.app, words);
    }
  });
  return 0;
}
