#include "config/layer_table.hpp"

#include <algorithm>

#include "config/layers/families.hpp"

namespace gpunn::config {

namespace {

// In the order of the documentation.
std::vector<LayerType> make_table() {
  std::vector<LayerType> table;
  for (const auto& family :
       {convolution_layers(), linear_layers(), activation_layers(), pooling_layers(), upsampling_layers(),
        normalization_layers(), shape_layers(), dropout_layers(), merge_layers(), attention_layers()}) {
    table.insert(table.end(), family.begin(), family.end());
  }
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
