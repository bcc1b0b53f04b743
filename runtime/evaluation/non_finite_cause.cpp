#include "evaluation/non_finite_cause.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

namespace gpunn::training {

namespace {

int64_t non_finite_values(const std::vector<std::byte>& floats) {
  int64_t count = 0;
  for (std::size_t i = 0; i + sizeof(float) <= floats.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, floats.data() + i, sizeof(value));
    count += std::isfinite(value) ? 0 : 1;
  }
  return count;
}

}  // namespace

std::string non_finite_weights(const TrainedModel& model) {
  const TrainedFile trained = read_trained(model.path, model.overrides);
  for (const storage::StoredTensor& tensor : model_tensors(trained.checkpoint)) {
    const int64_t count = tensor.type.dtype == DType::f32 ? non_finite_values(tensor.values) : 0;
    if (count == 0) continue;
    return std::to_string(count) + " of the " + std::to_string(tensor.type.elements()) + " values of '" + tensor.name +
           "' in " + trained.file.string() + " are NaN or infinite: the training diverged, or the file is damaged. " +
           "Evaluate an earlier checkpoint, or train with a smaller learning rate";
  }
  return {};
}

std::string non_finite_cause(const TrainedModel& model, const Session& session) {
  if (std::string weights = non_finite_weights(model); !weights.empty()) return weights;
  if (session.experiment().precision == Precision::f16) {
    return "a value between the layers is beyond the range of f16, 65,504. Evaluate with --set training.precision=fp32";
  }
  return "a value between the layers is beyond the range of f32. Compare the scale of the inputs with that of the "
         "training (data.mean, data.stddev)";
}

}  // namespace gpunn::training
