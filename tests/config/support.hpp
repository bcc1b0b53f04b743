// What the tests of config/ share.
#pragma once

#include <gpunn/experiment.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiment/schema.hpp"
#include "temporary_folder.hpp"

namespace config_test {

namespace fs = std::filesystem;

using gpunn::testing::TemporaryFolder;

// A model and data that nothing is wrong with, to put in front of what is tested.
inline const std::string kSound =
    "model: {layers: [linear: {units: 2}]}\n"
    "data: {dataset: points}\n";

// What is said about an experiment named e.yaml; empty: nothing.
inline std::vector<std::string> errors_of(const std::string& text, const std::vector<gpunn::Override>& overrides = {}) {
  std::vector<std::string> texts;
  try {
    gpunn::parse_experiment(text, "e.yaml", overrides);
  } catch (const gpunn::ConfigError& error) {
    for (const auto& diagnostic : error.diagnostics()) texts.push_back(diagnostic.text());
  }
  return texts;
}

// The same for a model inline; its first line is line 2 of the file, its columns two more.
inline std::vector<std::string> model_errors_of(const std::string& model) {
  std::string text = "model:\n";
  std::string line = "  ";
  for (const char c : model) {
    line += c;
    if (c == '\n') {
      text += line;
      line = "  ";
    }
  }
  return errors_of(text + line + "\ndata: points\n");
}

using Texts = std::vector<std::string>;

// "mnist, cifar10, ...": the values of a key that takes one of several.
inline std::string choices_of(const std::string& key) {
  std::string text;
  for (const std::string& choice : gpunn::config::find_key(key)->choices) text += (text.empty() ? "" : ", ") + choice;
  return text;
}

}  // namespace config_test
