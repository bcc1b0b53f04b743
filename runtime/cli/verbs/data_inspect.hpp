#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/parser/arguments.hpp"

namespace gpunn::cli {

// The verb `gpunn data inspect`.
struct InspectOptions {
  std::string what;                   // a data set's name, an experiment's file, or a folder or file of samples
  std::filesystem::path path;         // a folder to search first
  std::vector<std::string> settings;  // "data.key=value"
  std::filesystem::path sheet;        // a PNG to write; empty: none
  int64_t columns = 12;               // of the sheet
  bool augmented = false;             // the sheet shows augmented images, as in training
};

void add_inspect_options(Verb verb, InspectOptions& options);
ExitCode inspect(const InspectOptions& options, bool json);

}  // namespace gpunn::cli
