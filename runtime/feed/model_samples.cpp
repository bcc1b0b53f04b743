#include "feed/model_samples.hpp"

#include <algorithm>
#include <cstddef>

#include "feed/evaluation_part.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"

namespace gpunn::training {

nn::SampleTypes model_samples(const Schema& fields) {
  nn::SampleTypes samples;
  for (const Field* input : fields.of(Role::input)) samples.push_back({input->name, fields::taken_type(*input)});
  return samples;
}

nn::SampleTypes model_samples(const Dataset& dataset) { return model_samples(typed_fields(dataset)); }

Schema typed_fields(const Dataset& dataset) {
  Schema fields = dataset.fields;
  fields.input().type = fields::device_type({dataset.train.samples.dtype, sample_shape(dataset)});
  return fields;
}

std::vector<InputPair> paired_inputs(const Schema& model, Schema& data) {
  const std::vector<const Field*> taken = model.of(Role::input);
  if (taken.size() == 1 && data.of(Role::input).size() == 1) return {{taken.front(), &data.input()}};
  std::vector<InputPair> pairs;
  for (const Field* input : taken) {
    const auto is_given = [&](const Field& field) { return field.role == Role::input && field.name == input->name; };
    const auto given = std::ranges::find_if(data.fields, is_given);
    pairs.push_back({input, given == data.fields.end() ? nullptr : &*given});
  }
  return pairs;
}

void take_normalisation(const Schema& model, Schema& data) {
  for (const auto& [taken, given] : paired_inputs(model, data)) {
    if (given == nullptr || taken->mean.empty()) continue;
    given->mean = taken->mean;
    given->stddev = taken->stddev;
  }
}

}  // namespace gpunn::training
