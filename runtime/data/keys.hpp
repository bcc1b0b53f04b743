#pragma once

#include <gpunn/data_config.hpp>

#include <vector>

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"
#include "config/key.hpp"

namespace gpunn::data {

// The keys of `data`, and the mistakes in their values.
std::vector<config::KeyOf<DataConfig>> data_keys();
void check_data(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found);

}  // namespace gpunn::data
