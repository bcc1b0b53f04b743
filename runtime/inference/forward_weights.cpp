#include "inference/forward_weights.hpp"

#include <gpunn/error.hpp>

#include <cstring>
#include <string>
#include <utility>

#include "training/batch_ops.hpp"
#include "training/flat_tensors.hpp"
#include "training/trained_model.hpp"

namespace gpunn::inference {

namespace {

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

Weights forward_weights(const ForwardModel& model, const ForwardProgram& program, const storage::Checkpoint& checkpoint,
                        const std::filesystem::path& file) {
  const std::vector<storage::StoredTensor>& parameters = training::evaluated_parameters(checkpoint);
  const std::vector<storage::StoredTensor>& buffers = training::evaluated_buffers(checkpoint);
  const std::string differences = training::mismatches(model.layout, parameters, "parameter") +
                                  training::mismatches(model.buffers, buffers, "buffer");
  if (!differences.empty()) {
    throw Error("the checkpoint " + file.string() + " does not hold the weights of its model:" + differences,
                ExitCode::usage);
  }
  Weights weights;
  weights.parameters = floats_of(training::put_together(model.layout, parameters));
  weights.buffers = floats_of(training::put_together(model.buffers, buffers));
  fold_weights(program.graph, program.norms, weights.parameters, weights.buffers);
  const Field& input = model.info.fields.input();
  training::Normalisation normalisation = training::device_normalisation(input.type.dtype, input.mean, input.stddev);
  weights.scale = std::move(normalisation.scale);
  weights.shift = std::move(normalisation.shift);
  return weights;
}

}  // namespace gpunn::inference
