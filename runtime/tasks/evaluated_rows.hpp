#pragma once

#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpunn::tasks {

// A batch of evaluated rows in host memory, and the way to their samples. Valid during the call that passes it.
struct EvaluatedRows {
  const Dataset& dataset;         // its `test` has the rows
  int64_t first = 0;              // row of `test`
  std::span<const float> scores;  // [rows, numbers], of the model
  std::span<const float>
      predictions;                // [rows, numbers], made of the scores as the task says; of scaled targets, scaled
  std::span<const float> losses;  // [rows]

  std::size_t count() const { return losses.size(); }
  // The prediction of row `row` of the batch.
  std::span<const float> prediction(std::size_t row) const { return row_of(predictions, row); }
  std::span<const float> row_scores(std::size_t row) const { return row_of(scores, row); }

  const Field& target() const { return dataset.fields.target(); }
  // Whether the row has a size of its own. Such rows come one by one.
  bool is_single() const { return !dataset.test.singles.empty(); }
  // The split that holds the rows: `test`, or that of the single row.
  const Split& split() const {
    return is_single() ? dataset.test.singles[static_cast<std::size_t>(first)] : dataset.test;
  }
  int64_t first_in_split() const { return is_single() ? 0 : first; }
  // The values of a field for the rows of the batch, packed. Not for ragged fields.
  std::span<const std::byte> bytes_of(const std::string& field) const;
  std::vector<float> floats_of(const std::string& field) const;    // of a field of f32
  std::vector<double> numbers_of(const std::string& field) const;  // of a field of u8, f32 or f64

 private:
  std::span<const float> row_of(std::span<const float> all, std::size_t row) const {
    const std::size_t size = all.size() / count();
    return all.subspan(row * size, size);
  }
};

}  // namespace gpunn::tasks
