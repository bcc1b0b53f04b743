#pragma once

#include <gpunn/augmentation_config.hpp>

#include <vector>

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"
#include "config/key.hpp"

namespace gpunn::data {

// The keys of `augmentation`, and what is wrong with what was given.
std::vector<config::KeyOf<AugmentationConfig>> augmentation_keys();
void check_augmentation(const AugmentationConfig& config, const config::GivenKeys& given, config::Diagnostics& found);

}  // namespace gpunn::data
