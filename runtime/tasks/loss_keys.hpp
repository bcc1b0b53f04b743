#pragma once

#include <gpunn/loss_config.hpp>

#include <vector>

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"
#include "config/key.hpp"

namespace gpunn::tasks {

// The keys of `loss`, and what is wrong with what was given.
std::vector<config::KeyOf<LossConfig>> loss_keys();
void check_loss(const LossConfig& config, const config::GivenKeys& given, config::Diagnostics& found);

}  // namespace gpunn::tasks
