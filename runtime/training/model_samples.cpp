#include "training/model_samples.hpp"

#include "fields/kind.hpp"
#include "training/evaluation_part.hpp"

namespace gpunn::training {

nn::SampleTypes model_samples(const Schema& fields) {
  nn::SampleTypes samples;
  for (const Field* input : fields.of(Role::input)) samples.push_back({input->name, fields::taken_type(*input)});
  return samples;
}

nn::SampleTypes model_samples(const Dataset& dataset) {
  Schema fields = dataset.fields;
  fields.input().type = {dataset.train.samples.dtype, sample_shape(dataset)};
  return model_samples(fields);
}

}  // namespace gpunn::training
