#pragma once

#include <gpunn/damaged.hpp>

#include <cstddef>
#include <vector>

#include "cli/command.hpp"
#include "cli/json.hpp"

namespace gpunn::cli {

// The option --damaged.
void add_damaged_option(Verb verb, Damaged& policy);

// The damaged images of a verb, which are reported after the answers for all others.
class DamagedImages {
 public:
  DamagedListener listener() {
    return [this](const DamagedImage& image) { images_.push_back(image); };
  }
  // Adds an entry with its error for each image that is left out; `key` is what the verb calls an image.
  void add_to(Json& document, const char* key) const;
  // Prints what became of them to stderr. Throws Error if they are an error.
  void report(Damaged policy, std::size_t answered) const;

 private:
  std::vector<DamagedImage> images_;
};

}  // namespace gpunn::cli
