#pragma once

#include <gpunn/data.hpp>

#include <memory>
#include <string>
#include <vector>

#include "config/given_keys.hpp"
#include "config/kinds.hpp"
#include "data/detection/box_images.hpp"

namespace gpunn::data {

// A data set that trains on varied samples of some images, and is evaluated on others as they are, scaled into samples.
Dataset box_dataset(std::shared_ptr<const BoxImages> train, const std::shared_ptr<const BoxImages>& test,
                    std::vector<std::string> classes, const DataConfig& config,
                    const std::shared_ptr<const BoxImages>& validation = nullptr);

// The keys that the sets of boxes share, behind those that one has of its own.
config::KindOf<DataConfig> box_keys(std::vector<config::KeyOf<BoxSet>> own, const std::vector<int64_t>& image_size);
void check_boxes(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found);

// The settings with the sizes that are not given.
BoxSet box_settings(const DataConfig& config, const std::vector<int64_t>& image_size);

}  // namespace gpunn::data
