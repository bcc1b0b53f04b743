#pragma once

#include <vector>

#include "session/session.hpp"

namespace gpunn::testing {

// What the task predicts of the rows of the session's test split: [rows, outputs].
inline std::vector<float> predictions_of(training::Session& session) {
  std::vector<float> predictions;
  session.evaluate_rows([&](const tasks::EvaluatedRows& rows) {
    predictions.insert(predictions.end(), rows.predictions.begin(), rows.predictions.end());
  });
  return predictions;
}

}  // namespace gpunn::testing
