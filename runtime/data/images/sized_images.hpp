#pragma once

#include <gpunn/data_config.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include "config/given_keys.hpp"
#include "config/kinds.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

config::KeyOf<SizedImages> image_size_key();
// All keys of SizedImages.
std::vector<config::KeyOf<SizedImages>> sized_image_keys();

// Puts those keys in front of a set's own.
template <class Set>
config::KindOf<DataConfig> with_sized_keys(config::KindOf<DataConfig> kind) {
  std::vector<config::KeyOf<DataConfig>> keys;
  for (config::KeyOf<SizedImages>& key : sized_image_keys()) {
    keys.push_back(config::in_kind<Set, DataConfig>(std::move(key)));
  }
  kind.keys.insert(kind.keys.begin(), keys.begin(), keys.end());
  return kind;
}

void check_sized_images(const SizedImages& settings, const config::GivenKeys& given, config::Diagnostics& found);

}  // namespace gpunn::data
