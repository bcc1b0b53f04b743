#include "config/blocks.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "common/text.hpp"
#include "config/layer_table.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

// What a use may be given beside the block's own parameters.
const std::vector<std::string> kUseKeys = {"name", "from", "when", "repeat", "first"};
// What makes an entry of a list of layers something other than a layer.
const std::vector<std::string> kStructureKeys = {"repeat", "when", "choose", "branch", "layers"};
constexpr std::size_t kLongestWord = 100;

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= kLongestWord && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

class BlocksReader {
 public:
  explicit BlocksReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  Blocks read(const YamlNode& node) {
    if (node.kind == Kind::null) return {};
    if (node.kind != Kind::map) {
      diagnostics_.add(node.where, "blocks: expected a map of names and blocks, found " + describe(node));
      return {};
    }
    for (const YamlEntry& entry : node.entries) read_block(entry);
    return std::move(blocks_);
  }

 private:
  void read_block(const YamlEntry& entry) {
    if (!is_word(entry.key) || contains(kStructureKeys, entry.key)) {
      diagnostics_.add(entry.where, "a block's name has letters, digits and '_', and is not " +
                                        join(kStructureKeys, ", ") + "; found " + in_quotes(entry.key));
      return;
    }
    if (find_layer_type(entry.key) != nullptr) {
      diagnostics_.add(entry.where, "a block can't be called " + in_quotes(entry.key) + ": that is a type of layer");
      return;
    }
    Block block;
    block.name = entry.key;
    block.where = entry.where;
    const std::string title = "the block " + in_quotes(entry.key);
    if (entry.value.kind != Kind::map) {
      diagnostics_.add(entry.value.where, title + ": expected a map with 'layers', found " + describe(entry.value));
      return;
    }
    for (const YamlEntry& part : entry.value.entries) {
      if (part.key == "parameters") {
        read_parameters(part.value, title, block);
      } else if (part.key == "layers") {
        block.layers = &part.value;
      } else {
        diagnostics_.add(part.where, "unknown key " + in_quotes(part.key) + " in " + title +
                                         did_you_mean_or_list(part.key, {"parameters", "layers"}));
      }
    }
    if (block.layers == nullptr || block.layers->kind != Kind::list || block.layers->items.empty()) {
      diagnostics_.add(block.layers == nullptr ? entry.where : block.layers->where,
                       title + ": expected a list of layers under 'layers'");
      return;
    }
    blocks_.emplace(entry.key, std::move(block));
  }

  void read_parameters(const YamlNode& node, const std::string& title, Block& block) {
    if (node.kind == Kind::null) return;
    if (node.kind != Kind::map) {
      diagnostics_.add(node.where,
                       title + ": parameters: expected a map of names and defaults, found " + describe(node));
      return;
    }
    if (node.entries.size() > kMostModelParameters) {
      diagnostics_.add(node.where, title + " has more than " + std::to_string(kMostModelParameters) + " parameters");
      return;
    }
    for (const YamlEntry& entry : node.entries) {
      if (!is_word(entry.key) || contains(kUseKeys, entry.key)) {
        diagnostics_.add(entry.where, title + ": a parameter's name has letters, digits and '_', and is not " +
                                          join(kUseKeys, ", ") + "; found " + in_quotes(entry.key));
      } else if (entry.value.kind == Kind::null) {
        block.parameters.push_back({entry.key, std::nullopt});
      } else if (entry.value.kind == Kind::scalar) {
        block.parameters.push_back({entry.key, entry.value.scalar});
      } else {
        diagnostics_.add(entry.value.where, title + ": parameter " + in_quotes(entry.key) +
                                                ": expected a number or a word, or nothing where it has to be given, "
                                                "found " +
                                                describe(entry.value));
      }
    }
  }

  Diagnostics& diagnostics_;
  Blocks blocks_;
};

// Adds the blocks that a list of layers uses, its branches and alternatives included.
void collect_uses(const YamlNode& list, const Blocks& blocks, std::vector<const Block*>& uses) {
  for (const YamlNode& item : list.items) {
    if (const std::optional<BlockUse> use = block_use(item, blocks)) {
      uses.push_back(use->block);
      continue;
    }
    if (item.kind != Kind::map) continue;
    const bool structure = std::any_of(item.entries.begin(), item.entries.end(),
                                       [](const YamlEntry& entry) { return contains(kStructureKeys, entry.key); });
    for (const YamlEntry& entry : item.entries) {
      if (structure && entry.value.kind == Kind::list) collect_uses(entry.value, blocks, uses);
    }
  }
}

// Walks from block to block, each once.
class BlockGraph {
 public:
  BlockGraph(const Blocks& blocks, Diagnostics& diagnostics) : blocks_(blocks), diagnostics_(diagnostics) {}

  // The longest way from here down; 0 after a mistake.
  std::size_t visit(const Block& block) {
    const auto open = std::find(path_.begin(), path_.end(), &block);
    if (open != path_.end()) {
      std::vector<std::string> names;
      for (auto it = open; it != path_.end(); ++it) names.push_back((*it)->name);
      names.push_back(block.name);
      diagnostics_.add(block.where, "the block " + in_quotes(block.name) + " contains itself: " + join(names, " -> "));
      return 0;
    }
    if (const auto known = depths_.find(&block); known != depths_.end()) return known->second;
    if (path_.size() >= kDeepestBlocks) return too_deep(block);
    path_.push_back(&block);
    std::vector<const Block*> uses;
    collect_uses(*block.layers, blocks_, uses);
    std::size_t depth = 1;
    for (const Block* use : uses) depth = std::max(depth, visit(*use) + 1);
    path_.pop_back();
    if (depth > kDeepestBlocks) depth = too_deep(block);
    depths_[&block] = depth;
    return depth;
  }
  bool reached(const Block& block) const { return depths_.count(&block) != 0; }

 private:
  std::size_t too_deep(const Block& block) {
    diagnostics_.add(block.where, "blocks are nested more than " + std::to_string(kDeepestBlocks) + " deep");
    return 0;
  }

  const Blocks& blocks_;
  Diagnostics& diagnostics_;
  std::vector<const Block*> path_;
  std::map<const Block*, std::size_t> depths_;
};

}  // namespace

const BlockParameter* Block::find(const std::string& parameter) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const BlockParameter& candidate) { return candidate.name == parameter; });
  return found == parameters.end() ? nullptr : &*found;
}

std::optional<BlockUse> block_use(const YamlNode& item, const Blocks& blocks) {
  const bool bare = item.kind == Kind::scalar;
  if (!bare && (item.kind != Kind::map || item.entries.size() != 1)) return std::nullopt;
  const auto found = blocks.find(bare ? item.scalar : item.entries.front().key);
  if (found == blocks.end()) return std::nullopt;
  return BlockUse{&found->second, bare ? nullptr : &item.entries.front().value, item.where};
}

Blocks read_blocks(const YamlNode& node, const YamlNode& layers, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.size();
  Blocks blocks = BlocksReader(diagnostics).read(node);
  const bool sound = diagnostics.size() == before;
  BlockGraph graph(blocks, diagnostics);
  std::vector<const Block*> uses;
  collect_uses(layers, blocks, uses);
  for (const Block* use : uses) graph.visit(*use);
  for (const auto& [name, block] : blocks) {
    if (diagnostics.full() || graph.reached(block)) continue;
    const std::size_t known = diagnostics.size();
    graph.visit(block);
    // An ill-formed block, a cycle and the like may be why nothing leads here.
    if (sound && diagnostics.size() == known && known == before) {
      diagnostics.add(block.where, "no layer uses the block " + in_quotes(name));
    }
  }
  return blocks;
}

}  // namespace gpunn::config
