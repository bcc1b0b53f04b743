#pragma once

#include <gpunn/data.hpp>

#include <string>

#include "program/layout.hpp"
#include "session/schedule.hpp"

namespace gpunn::training {

class Session;

// "WARNING: ..." lines for the user; empty: none.
std::string fallback_notice(const Dataset& dataset);    // a data set in place of the one asked for
std::string schedule_notice(const Schedule& schedule);  // a schedule longer than the training
// "note: ..." of batch norms that `freeze` holds all parameters of, and whose running statistics move all the same.
std::string moving_statistics_notice(const Experiment& experiment, const ParameterLayout& parameters,
                                     const ParameterLayout& buffers);
// "WARNING: ..." of batch norms that get a single number per channel, as batches of one row have it.
std::string single_number_notice(const Experiment& experiment, const nn::SampleTypes& samples, int world);

// "mnist: 60000 samples to train on, 10000 to evaluate on, each u8[1, 28, 28], 10 classes", and whether that is the
// registry's word.
std::string data_text(const Dataset& dataset);

// Two of them, those that there are.
std::string joined(const std::string& one, const std::string& other);

// "WARNING: ..." where the schedule extends over another number of steps than `steps_before`, for which it was made,
// and the rates from `step` on are others for it. `resumable`: the run is one that `gpunn resume` continues.
std::string stretched_schedule_notice(const Session& session, int64_t step, int64_t steps_before, bool resumable);

}  // namespace gpunn::training
