// The normalisation of a data set by its training rows, and notes on columns that were rounded before.
#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "common/text.hpp"
#include "data/rows/rows.hpp"
#include "data/statistics.hpp"
#include "fields/kind.hpp"

namespace gpunn::data {

namespace {

constexpr double kFewestSteps = 256;   // of a column; a byte has as many
constexpr std::size_t kMostNoted = 8;  // columns with a note of their own
constexpr double kStepOfIntegers = 1;  // beyond this, neighbouring integers become equal

std::string number_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

double largest_of(const fields::Moments& moments) { return std::max(std::abs(moments.low), std::abs(moments.high)); }

bool is_coarse_for(const fields::Moments& moments, DType type) {
  const double largest = largest_of(moments);
  // The steps of a column that became constant are larger than what the column held.
  return moments.stddev > 0 ? is_coarse(largest, moments.stddev, type) : step_at(largest, type) > kStepOfIntegers;
}

// Adds a note for each of the columns whose numbers lie too far apart in this type.
template <class Name>
void note_coarse(Dataset& set, const std::vector<fields::Moments>& columns, DType type, const Name& name_of_column,
                 const std::string& what, const std::string& advice) {
  std::size_t coarse = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!is_coarse_for(columns[i], type) || ++coarse > kMostNoted) continue;
    const double largest = largest_of(columns[i]);
    set.notes.push_back("WARNING: " + set.source + ": " + name_of_column(i) + " " + what + " " +
                        std::string(gpunn::name_of(type)) + ". Its numbers reach " + number_text(largest) +
                        ", where neighbours are " + number_text(step_at(largest, type)) +
                        " apart, and their standard deviation is " + number_text(columns[i].stddev) + ". " + advice);
  }
  if (coarse > kMostNoted) {
    set.notes.push_back("WARNING: " + set.source + ": the same holds for " + std::to_string(coarse - kMostNoted) +
                        " more columns");
  }
}

auto target_namer(const Dataset& set) {
  return [&set](std::size_t i) {
    return "target " +
           (i < set.fields.target().names.size() ? in_quotes(set.fields.target().names[i]) : std::to_string(i));
  };
}

std::string advice_for(DType type) {
  return type == DType::f64 ? "Subtract an offset before the numbers become floating-point numbers"
                            : "Give the column as f64 or as integers, or subtract an offset before it is rounded";
}

// Sets the mean and deviation of a field from these values. Returns the moments of all but bytes.
std::vector<fields::Moments> measure(Field& field, const TensorType& type, std::span<const std::byte> values) {
  field.mean.clear();
  field.stddev.clear();
  if (type.dtype == DType::u8) {
    for (const ChannelSummary& channel : fields::summaries_of(type, values)) {
      field.mean.push_back(channel.mean / 255);
      field.stddev.push_back(channel.stddev > 0 ? channel.stddev / 255 : 1);  // a constant stays one
    }
    return {};
  }
  std::vector<fields::Moments> channels = fields::moments_of(type, values);
  for (const fields::Moments& channel : channels) {
    field.mean.push_back(channel.centre());
    field.stddev.push_back(channel.unit());
  }
  return channels;
}

std::string column_name(const Field& field, const TensorType& type, std::size_t i) {
  if (i < field.names.size()) return "column " + in_quotes(field.names[i]);
  return (type.shape.size() > 2 ? "channel " : "column ") + std::to_string(i);
}

}  // namespace

double step_at(double number, DType type) {
  constexpr int kBitsOfF64 = 52, kBitsOfF32 = 23, kBitsOfF16 = 10, kBitsOfBf16 = 7;
  const int bits = type == DType::f64    ? kBitsOfF64
                   : type == DType::f16  ? kBitsOfF16
                   : type == DType::bf16 ? kBitsOfBf16
                                         : kBitsOfF32;
  return number == 0 ? 0 : std::ldexp(1.0, std::ilogb(number) - bits);
}

bool is_coarse(double largest, double stddev, DType type) {
  return stddev * std::sqrt(12.0) < kFewestSteps * step_at(largest, type);
}

void normalise_by_training_samples(Dataset& set) {
  const Split& train = set.train;
  const Split measured = train.source != nullptr ? evenly_spread(train, kMeasuredSamples) : Split();
  const Split& split = train.source != nullptr ? measured : train;
  Field& input = set.fields.input();
  if (!input.kind.empty() && !fields::kind_of(input).is_normalised()) return;
  const std::vector<fields::Moments> channels = measure(input, split.samples, split.sample_bytes());
  const DType type = train.rounded_to.value_or(train.samples.dtype);
  const auto name = [&](std::size_t i) { return column_name(input, split.samples, i); };
  note_coarse(set, channels, type, name, "holds numbers rounded to", advice_for(type));
}

void normalise_further_inputs(Dataset& set) {
  for (Field& field : set.fields.fields) {
    const auto values = set.train.fields.find(field.name);
    if (&field == &set.fields.input() || field.role != Role::input || !fields::kind_of(field).is_normalised() ||
        !field.mean.empty() || values == set.train.fields.end()) {
      continue;
    }
    const TensorType& type = values->second.type;
    const std::vector<fields::Moments> columns = measure(field, type, values->second.bytes());
    const auto name = [&](std::size_t i) { return column_name(field, type, i) + " of " + in_quotes(field.name); };
    note_coarse(set, columns, type.dtype, name, "holds numbers rounded to", advice_for(type.dtype));
  }
}

void measure_targets(Dataset& set) {
  Field& target = set.fields.target();
  target.mean.clear();
  target.stddev.clear();
  const auto field = set.train.fields.find(target.name);
  if (field == set.train.fields.end()) return;
  const std::vector<fields::Moments> columns = measure(target, field->second.type, field->second.bytes());
  const DType type = field->second.type.dtype;
  note_coarse(set, columns, type, target_namer(set), "holds numbers rounded to", advice_for(type));
}

void note_rounded_targets(Dataset& set) {
  const auto field = set.train.fields.find(set.fields.target().name);
  if (field == set.train.fields.end()) return;
  const std::vector<fields::Moments> columns = fields::moments_of(field->second.type, field->second.bytes());
  note_coarse(set, columns, DType::f32, target_namer(set), "is learnt in its own units, as",
              "Set data.scale_targets: true");
}

}  // namespace gpunn::data
