#pragma once

namespace gpunn {

// The samples that a model is evaluated on: those that a training is watched by, or those that it never saw.
enum class EvaluationPart { validation, test };

// "validation" or "test".
constexpr const char* name_of(EvaluationPart part) {
  return part == EvaluationPart::validation ? "validation" : "test";
}

}  // namespace gpunn
