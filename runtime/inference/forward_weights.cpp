#include "inference/forward_weights.hpp"

#include <gpunn/error.hpp>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "program/batch_ops.hpp"
#include "program/flat_tensors.hpp"
#include "program/programs.hpp"
#include "runs/trained_model.hpp"

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
  for (const ForwardInput& input : model.inputs) {
    const training::Normalisation own = training::device_normalisation(input.sample.dtype, input.mean, input.stddev);
    weights.scale.insert(weights.scale.end(), own.scale.begin(), own.scale.end());
    weights.shift.insert(weights.shift.end(), own.shift.begin(), own.shift.end());
  }
  return weights;
}

void write_inputs(execution::Variables& variables, const ForwardModel& model, const Weights& weights) {
  const auto write = [&](const std::string& name, const TensorType& type, auto values) {
    variables.create(name, type, graph::Storage::data);
    variables.write(name, std::as_bytes(values));
  };
  std::size_t first = 0;
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const ForwardInput& input = model.inputs[i];
    variables.create(variable::numbered(variable::kInput, i), forward_rows(input.sample, model.max_batch),
                     graph::Storage::data);
    if (!input.is_normalised()) continue;
    const std::size_t count = input.mean.size();
    const TensorType channels{DType::f32, {static_cast<int64_t>(count)}};
    write(variable::numbered(training::variable::kScale, i), channels, std::span(weights.scale).subspan(first, count));
    write(variable::numbered(training::variable::kShift, i), channels, std::span(weights.shift).subspan(first, count));
    first += count;
  }
  std::vector<int32_t> rows(static_cast<std::size_t>(model.max_batch));
  std::iota(rows.begin(), rows.end(), 0);
  write(variable::kRows, {DType::i32, {model.max_batch}}, std::span<const int32_t>(rows));
}

}  // namespace gpunn::inference
