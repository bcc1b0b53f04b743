#include "training/evaluation_part.hpp"

#include <string>
#include <utility>

namespace gpunn::training {

Dataset load_for(const DataConfig& config, EvaluationPart part) {
  Dataset set = load_dataset(config);
  const bool has_test = set.test.rows() > 0;
  if (set.validation.rows() > 0 && (part == EvaluationPart::validation || !has_test)) {
    set.notes.push_back(
        std::to_string(set.validation.rows()) +
        " training samples are put aside (data.validation_fraction) and evaluated" +
        (has_test ? "; `gpunn eval` measures on the " + std::to_string(set.test.rows()) + " test samples" : ""));
    set.test = std::move(set.validation);
  }
  set.validation = {};
  return set;
}

}  // namespace gpunn::training
