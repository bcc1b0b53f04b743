#include "config/layer_table.hpp"

#include <algorithm>
#include <iterator>

#include "config/layers/families.hpp"

namespace gpunn::config {

namespace {

std::vector<LayerType> make_table() {
  std::vector<LayerType> table;
#define GPUNN_LAYERS(name) std::ranges::move(name##_layers(), std::back_inserter(table));
#include "config/layers/families.inc"
#undef GPUNN_LAYERS
  return table;
}

}  // namespace

const LayerKey* LayerType::find(std::string_view key) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const LayerKey& row) { return row.name == key; });
  return found == keys.end() ? nullptr : &*found;
}

const std::vector<LayerType>& layer_table() {
  static const std::vector<LayerType> table = make_table();
  return table;
}

const LayerType* find_layer_type(std::string_view name) {
  for (const LayerType& type : layer_table()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::vector<std::string> layer_type_names() {
  std::vector<std::string> names;
  for (const LayerType& type : layer_table()) names.push_back(type.name);
  return names;
}

}  // namespace gpunn::config
