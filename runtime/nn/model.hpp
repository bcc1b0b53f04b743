#pragma once

#include <gpunn/model_spec.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::nn {

// kaiming_uniform and bias_uniform draw from U(-b, b) with b = 1/sqrt(fan_in): He et al.'s bound for a slope of sqrt(5)
// (2015), as is PyTorch's default for convolutions and linear layers. `normal` and `uniform` draw from distributions
// around 0 of the parameter's own deviation.
enum class InitKind { zeros, kaiming_uniform, bias_uniform, ones, normal, uniform, interpolation, constant };

// A trainable tensor, or a buffer, which training changes without a gradient; before it has memory.
struct Parameter {
  std::string name;  // "conv1.weight", "bn1.running_mean"
  Shape shape;
  InitKind init = InitKind::zeros;
  int64_t fan_in = 0;
  bool decayed = false;    // weights decay, biases and norms do not
  double deviation = 0;    // of InitKind::normal and uniform; the number of InitKind::constant
  std::string layer = {};  // whose it is
};

// A sample of one of a model's inputs. Names count where there are several; the only one may have any name.
struct SampleType {
  std::string name = {};
  TensorType type;
};
using SampleTypes = std::vector<SampleType>;
// The sample of a model that has one input of f32.
inline SampleTypes one_sample(const Shape& shape) { return {{.type = {DType::f32, shape}}}; }

std::vector<std::string> names_of(const SampleTypes& samples);

// The number of the sample for each input of a model, by its name. Samples that the model has no input for are left
// out. Throws ConfigError, with the place of the input, if there is none.
std::vector<std::size_t> matched_inputs(const ModelSpec& model, const std::vector<std::string>& names);

// A model's parameters for given samples, in the order of their layers. Throws ConfigError with the layer and both
// shapes if they do not fit, or with the layers of a cycle.
std::vector<Parameter> model_parameters(const ModelSpec& model, const SampleTypes& samples);
inline std::vector<Parameter> model_parameters(const ModelSpec& model, const Shape& sample) {
  return model_parameters(model, one_sample(sample));
}

// And its buffers: what layers keep from step to step beside them, such as the running statistics of batch norm.
std::vector<Parameter> model_buffers(const ModelSpec& model, const SampleTypes& samples);
inline std::vector<Parameter> model_buffers(const ModelSpec& model, const Shape& sample) {
  return model_buffers(model, one_sample(sample));
}

// The shape of the first output for one sample, [1, ...]. Throws like model_parameters().
Shape output_shape(const ModelSpec& model, const SampleTypes& samples);
inline Shape output_shape(const ModelSpec& model, const Shape& sample) {
  return output_shape(model, one_sample(sample));
}

struct ForwardOptions {
  bool training = true;
  uint64_t seed = 1;
  graph::ValueId step = graph::kNoValue;     // the i64 counter, for dropout
  graph::ValueId count = graph::kNoValue;    // i32 0-d, how many rows of x count; none: all of them, always
  std::vector<graph::ValueId> buffers = {};  // values of model_buffers' shapes, in its order
  // Names of layers that leave their buffers as they are and go by them in training too.
  std::set<std::string> fixed_buffers = {};
  // Above 1: batch norms use the rows of this many ranks, of each the first `counted`, i32 0-d; none: all of them.
  int32_t world = 1;
  graph::ValueId counted = graph::kNoValue;
  std::set<std::size_t>* wide = nullptr;                    // where given: gets the nodes that have to stay f32
  std::map<std::string, graph::ValueId>* layers = nullptr;  // where given: each layer's output, by its name
};

// A value [N, sample...] for an input, by its name as in SampleType.
struct InputValue {
  std::string name = {};
  graph::ValueId value = graph::kNoValue;
};

// Values for batches of so many rows.
std::vector<InputValue> add_inputs(graph::Graph& graph, const SampleTypes& samples, int64_t rows);

// Appends the model to the graph and returns its outputs, in their order. `parameters` are values of model_parameters'
// shapes, in its order.
std::vector<graph::ValueId> build_forward(graph::Graph& graph, const ModelSpec& model,
                                          const std::vector<InputValue>& inputs,
                                          const std::vector<graph::ValueId>& parameters, const ForwardOptions& options);

// The first values of a parameter or buffer, a function of seed and `index` (its place among the model's parameters)
// alone: computed on the host with random.h, so that they are the same bits on every backend.
std::vector<float> initial_values(const Parameter& parameter, uint64_t seed, uint64_t index);

}  // namespace gpunn::nn
