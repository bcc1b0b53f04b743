// The keys and layers of experiments and models, for help and completion.
#pragma once

#include <gpunn/export.h>

#include <string>
#include <vector>

namespace gpunn {

// A key of an experiment, or a parameter of a layer. Texts are Markdown, as in docs/experiments.md.
struct KeyInfo {
  std::string path;      // "optimizer.learning_rate"
  std::string value;     // "an integer of at least 1"
  std::string fallback;  // "`0.01`", "none", "required"
  std::string help;
  std::vector<std::string> choices;  // all allowed values; empty: any
};

// A layer type: what it does, and its parameters.
struct LayerInfo {
  std::string name, help;
  std::vector<KeyInfo> keys;
  int inputs = 1, most_inputs = 1;  // number of layers that it takes
};

// In the order of the documentation, without `model`.
GPUNN_API std::vector<KeyInfo> experiment_keys();
GPUNN_API std::vector<LayerInfo> layer_types();
// The keys that a name may mean, best first: `lr` means optimizer.learning_rate. Keys of `section` ("" is the top) come
// without the section's name in front. A section's name stands for itself.
GPUNN_API std::vector<std::string> nearest_keys(const std::string& section, const std::string& name);

}  // namespace gpunn
