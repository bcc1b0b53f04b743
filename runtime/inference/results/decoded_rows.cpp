#include "inference/results/decoded_rows.hpp"

#include <cstring>
#include <span>

#include "tasks/task.hpp"

namespace gpunn::inference {

namespace {

template <class T>
std::vector<T> numbers_of(std::span<const std::byte> bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Numbers of a regression in the units of the data: f32 would round a large offset away.
std::vector<Decoded> named_values(const Field& target, const std::vector<double>& values) {
  const std::size_t columns = target.names.size();
  std::vector<Decoded> rows(values.size() / columns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % columns;
    rows[i / columns].values.push_back(
        {.name = target.names[column], .value = values[i], .stddev = target.stddev[column]});
  }
  return rows;
}

}  // namespace

std::vector<Decoded> decoded_rows(const ModelInfo& info, const TensorType& row, std::span<const std::byte> bytes,
                                  const DecodeOptions& options) {
  const Field& target = info.fields.target();
  if (row.dtype == DType::f64) return named_values(target, numbers_of<double>(bytes));
  std::vector<float> numbers;
  if (row.dtype == DType::i32) {  // label maps
    const std::vector<int32_t> classes = numbers_of<int32_t>(bytes);
    numbers.assign(classes.begin(), classes.end());
  } else {
    numbers = numbers_of<float>(bytes);
  }
  const tasks::Task& task = tasks::find(info.task);
  const auto size = static_cast<std::size_t>(row.elements());
  std::vector<Decoded> decoded;
  for (std::size_t at = 0; at + size <= numbers.size(); at += size) {
    decoded.push_back(task.decode({.values = std::span(numbers).subspan(at, size),
                                   .shape = row.shape,
                                   .names = target.names,
                                   .top = options.top,
                                   .with_probabilities = options.map_probabilities}));
  }
  return decoded;
}

}  // namespace gpunn::inference
