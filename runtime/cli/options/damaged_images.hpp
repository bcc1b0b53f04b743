#pragma once

#include <gpunn/damaged.hpp>

#include <cstddef>
#include <vector>

#include "cli/command.hpp"
#include "cli/reports/json.hpp"

namespace gpunn::cli {

// The option --damaged.
void add_damaged_option(Verb verb, Damaged& policy);

// The damaged images of a verb, which are reported after the answers for all others.
class DamagedImages {
 public:
  DamagedListener listener() {
    return [this](const DamagedImage& image) { images_.push_back(image); };
  }
  // Ends the verb: prints the JSON document, to which it adds an object with the error of each image that is left out,
  // and prints what became of the images to stderr. `key` is what the verb calls an image. Throws Error if damaged
  // images are an error, or returns its exit code after a document with answers.
  ExitCode finish(bool json, Json document, const char* key, Damaged policy, std::size_t answered) const;

 private:
  std::vector<DamagedImage> images_;
};

}  // namespace gpunn::cli
