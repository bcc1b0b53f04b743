#pragma once

#include <gpunn/error.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

inline constexpr std::size_t kDeepestBlocks = 32;         // a block in a block in ...
inline constexpr std::size_t kMostModelParameters = 256;  // of a model or a block

struct BlockParameter {
  std::string name;
  std::optional<std::string> fallback;  // may mention the model's parameters and those above; none: has to be given
};

// A list of layers with its own parameters, which a model uses like a layer.
struct Block {
  std::string name;
  SourceLocation where;
  std::vector<BlockParameter> parameters;
  const YamlNode* layers = nullptr;

  const BlockParameter* find(const std::string& parameter) const;
};

using Blocks = std::map<std::string, Block>;

// A use of a block in a list of layers: its name, and its arguments (may be null).
struct BlockUse {
  const Block* block = nullptr;
  const YamlNode* arguments = nullptr;
  SourceLocation where;
};
std::optional<BlockUse> block_use(const YamlNode& item, const Blocks& blocks);

// A model's `blocks`. Reports those that are ill-formed, named as a layer type, contain themselves (with the way), are
// nested too deeply, or that nothing in `layers` leads to. The result refers to `node`.
Blocks read_blocks(const YamlNode& node, const YamlNode& layers, Diagnostics& diagnostics);

}  // namespace gpunn::config
