#pragma once

#include <gpunn/training.hpp>

#include <optional>

#include "tasks/evaluated_rows.hpp"

namespace gpunn::training {

// Counts the evaluated rows with a NaN or an infinity in loss, scores or predictions.
class NonFiniteCount {
 public:
  explicit NonFiniteCount(bool has_loss) : has_loss_(has_loss) {}  // without a loss, that of every row is NaN
  void add(const tasks::EvaluatedRows& rows);
  const std::optional<NonFiniteRows>& found() const { return found_; }

 private:
  std::optional<NonFiniteRows> found_;
  bool has_loss_;
};

}  // namespace gpunn::training
