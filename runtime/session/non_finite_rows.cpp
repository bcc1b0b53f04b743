#include "session/non_finite_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpunn::training {

void NonFiniteCount::add(const tasks::EvaluatedRows& rows) {
  const auto finite = [](std::span<const float> values) {
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  };
  for (std::size_t i = 0; i < rows.count(); ++i) {
    const bool has_number = !has_loss_ || std::isfinite(rows.losses[i]);
    if (has_number && finite(rows.row_scores(i)) && finite(rows.prediction(i))) continue;
    if (!found_) found_ = NonFiniteRows{.rows = 0, .first = rows.first + static_cast<int64_t>(i), .cause = {}};
    ++found_->rows;
  }
}

}  // namespace gpunn::training
