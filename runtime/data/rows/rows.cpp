#include "data/rows/rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "common/parallel.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace {

std::size_t place_of(int64_t row) { return static_cast<std::size_t>(row); }

// Bytes that belong to a row, `row_bytes` each, moved to the front in the order of `rows`; from a row to one before it.
void gather_bytes(std::vector<std::byte>& values, std::size_t row_bytes, std::span<const int64_t> rows) {
  for (std::size_t to = 0; to < rows.size(); ++to) {
    std::memmove(values.data() + to * row_bytes, values.data() + place_of(rows[to]) * row_bytes, row_bytes);
  }
  values.resize(rows.size() * row_bytes);
  values.shrink_to_fit();
}

FieldValues copy_rows_of_field(const FieldValues& field, std::size_t all_rows, std::span<const int64_t> rows) {
  FieldValues result;
  result.type = field.type;
  const bool ragged = !field.offsets.empty();
  const auto items = static_cast<std::size_t>(ragged ? field.offsets.back() : static_cast<int64_t>(all_rows));
  const std::span<const std::byte> bytes = field.bytes();
  const std::size_t item_bytes = items > 0 ? bytes.size() / items : 0;
  if (ragged) result.offsets.push_back(0);
  for (const int64_t row : rows) {
    const std::size_t first = ragged ? place_of(field.offsets[place_of(row)]) : place_of(row);
    const std::size_t end = ragged ? place_of(field.offsets[place_of(row) + 1]) : first + 1;
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(first * item_bytes);
    result.values.insert(result.values.end(), begin, begin + static_cast<std::ptrdiff_t>((end - first) * item_bytes));
    if (ragged) result.offsets.push_back(result.offsets.back() + static_cast<int64_t>(end - first));
  }
  result.type.shape[0] = ragged ? result.offsets.back() : static_cast<int64_t>(rows.size());
  return result;
}

// All but the samples' values.
Split without_values(const Split& split, std::span<const int64_t> rows) {
  Split result;
  result.samples = split.samples;
  result.samples.shape[0] = static_cast<int64_t>(rows.size());
  result.source = split.source;
  for (const int64_t row : rows) {
    if (split.source != nullptr) result.source_rows.push_back(split.source_rows[place_of(row)]);
    if (!split.singles.empty()) result.singles.push_back(split.singles[place_of(row)]);
  }
  for (const auto& [name, field] : split.fields) {
    result.fields.emplace(name, copy_rows_of_field(field, place_of(split.rows()), rows));
  }
  return result;
}

std::size_t bytes_of_row(const Split& split) {
  return split.rows() > 0 ? split.sample_bytes().size() / place_of(split.rows()) : 0;
}

}  // namespace

Split copy_rows(const Split& split, std::span<const int64_t> rows) {
  Split result = without_values(split, rows);
  if (split.source != nullptr) return result;
  const std::size_t row_bytes = bytes_of_row(split);
  result.values.resize(rows.size() * row_bytes);
  for (std::size_t to = 0; to < rows.size(); ++to) {
    std::memcpy(result.values.data() + to * row_bytes, split.sample_bytes().data() + place_of(rows[to]) * row_bytes,
                row_bytes);
  }
  return result;
}

void keep_rows(Split& split, std::span<const int64_t> rows) {
  if (split.lent != nullptr || split.source != nullptr) {  // which is not ours to change
    split = copy_rows(split, rows);
    return;
  }
  Split result = without_values(split, rows);
  gather_bytes(split.values, bytes_of_row(split), rows);
  result.values = std::move(split.values);
  split = std::move(result);
}

Split with_values(const Split& split, std::span<const int64_t> rows) {
  if (split.source == nullptr) return copy_rows(split, rows);
  Split result = without_values(split, rows);
  const std::size_t row_bytes = result.samples.bytes() / std::max<std::size_t>(rows.size(), 1);
  result.values.resize(result.samples.bytes());
  for_row_stretches(std::ssize(rows), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      split.source->read(result.source_rows[place_of(i)], nullptr,
                         std::span(result.values).subspan(place_of(i) * row_bytes, row_bytes));
    }
  });
  result.source = nullptr;
  result.source_rows = {};
  return result;
}

Split evenly_spread(const Split& split, int64_t count) {
  const int64_t rows = std::min(count, split.rows());
  std::vector<int64_t> chosen(place_of(rows));
  for (int64_t i = 0; i < rows; ++i) chosen[place_of(i)] = i * split.rows() / rows;
  return with_values(split, chosen);
}

}  // namespace gpunn::data

namespace gpunn {

std::vector<int32_t> labels_of(const Split& split) {
  const auto found = split.fields.find(kLabelField);
  return found == split.fields.end() ? std::vector<int32_t>() : fields::numbers_in<int32_t>(found->second);
}

std::vector<std::byte> sample_of(const Split& split, int64_t row) { return data::with_values(split, {&row, 1}).values; }

}  // namespace gpunn
