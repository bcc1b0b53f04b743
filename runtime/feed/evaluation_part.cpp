#include "feed/evaluation_part.hpp"

#include <string>
#include <utility>

#include "data/rows/one_class.hpp"
#include "data/rows/part_digest.hpp"

namespace gpunn::training {

namespace {

Dataset with_part(Dataset set, const DataConfig& config, EvaluationPart part) {
  const bool has_test = set.test.rows() > 0;
  if (set.validation.rows() > 0 && (part == EvaluationPart::validation || !has_test)) {
    const bool own = config.validation_fraction == 0;
    if (has_test || !own) {
      set.notes.push_back(
          std::to_string(set.validation.rows()) +
          (own ? " validation samples are evaluated"
               : " training samples are put aside for validation (data.validation_fraction) and evaluated") +
          (has_test ? "; `gpunn eval` measures on the " + std::to_string(set.test.rows()) + " test samples" : ""));
    }
    set.test = std::move(set.validation);
    set.evaluated = EvaluationPart::validation;
  }
  set.validation = {};
  return set;
}

}  // namespace

Dataset load_for(const DataConfig& config, EvaluationPart part) {
  Dataset set = load_dataset(config);
  if (part == EvaluationPart::validation) data::require_several_classes(set, config);
  set.digest = data::digest_of(set);
  return with_part(std::move(set), config, part);
}

Dataset prepared_for(Dataset dataset, const DataConfig& config, EvaluationPart part, Digest digest) {
  Dataset set = prepare_arrays(std::move(dataset), config);
  if (part == EvaluationPart::validation) data::require_several_classes(set, config);
  if (digest == Digest::whole) set.digest = data::digest_of(set);
  return with_part(std::move(set), config, part);
}

Dataset sizes_for_training(const DataConfig& config) {
  return with_part(load_sizes(config), config, EvaluationPart::validation);
}

Shape sample_shape(const Dataset& set) {
  const Shape& shape = set.train.samples.shape;
  return {shape.begin() + 1, shape.end()};
}

}  // namespace gpunn::training
