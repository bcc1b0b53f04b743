#pragma once

#include <string>

#include "runs/trained_model.hpp"
#include "session/session.hpp"

namespace gpunn::training {

// Which weights of a model are NaN or infinite, as the end of a sentence without a full stop; empty: none are.
std::string non_finite_weights(const TrainedModel& model);

// Why a trained model's outputs are most likely NaN or infinite, likewise. Data sets have no such values.
std::string non_finite_cause(const TrainedModel& model, const Session& session);

}  // namespace gpunn::training
