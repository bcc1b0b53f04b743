#pragma once

#include <gpunn/check.hpp>
#include <gpunn/experiment.hpp>

#include <memory>
#include <vector>

#include "session/session.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::conformance {

// All that a training keeps, in one order, and the last step's loss.
std::vector<storage::StoredTensor> state_of(training::Session& session);

// A session whose training step is bound. nullptr if the backend can't train this; the verdict then says why.
std::unique_ptr<training::Session> open_training(const Experiment& experiment, CheckCase& result);

}  // namespace gpunn::conformance
