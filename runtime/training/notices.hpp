#pragma once

#include <gpunn/data.hpp>

#include <string>

#include "training/schedule/schedule.hpp"

namespace gpunn::training {

// "WARNING: ..." of what the user must know, a line each; empty: nothing.
std::string fallback_notice(const Dataset& dataset);    // a data set in place of the one asked for
std::string schedule_notice(const Schedule& schedule);  // a schedule longer than the training

// Two of them, those that there are.
std::string joined(const std::string& one, const std::string& other);

}  // namespace gpunn::training
