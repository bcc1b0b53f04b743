#include "config/layer_names.hpp"

#include <cstddef>
#include <set>

#include "common/pattern.hpp"

namespace gpunn::config {

namespace {

// The names of the blocks around a layer, from the outermost one on, then its own.
std::vector<std::string_view> enclosing_names(std::string_view layer) {
  std::vector<std::string_view> names;
  for (std::size_t dot = layer.find('.'); dot != std::string_view::npos; dot = layer.find('.', dot + 1)) {
    names.push_back(layer.substr(0, dot));
  }
  names.push_back(layer);
  return names;
}

}  // namespace

std::vector<std::string> layers_and_blocks(const ModelSpec& model) {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const LayerSpec& layer : model.layers) {
    for (const std::string_view name : enclosing_names(layer.name)) {
      if (seen.insert(name).second) names.emplace_back(name);
    }
  }
  return names;
}

std::string_view outermost_match(const std::vector<std::string>& patterns, std::string_view layer) {
  for (const std::string_view name : enclosing_names(layer)) {
    if (any_matches(patterns, name)) return name;
  }
  return {};
}

}  // namespace gpunn::config
