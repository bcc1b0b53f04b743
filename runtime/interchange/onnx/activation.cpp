#include <cmath>
#include <limits>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

template <auto& type>
void plain_layer(Call& call) {
  call.give_layer(type, {}, call.sample(0));
}

constexpr char kRelu[] = "relu";
constexpr char kSigmoid[] = "sigmoid";
constexpr char kTanh[] = "tanh";

void leaky_relu(Call& call) {
  call.give_layer("leaky_relu", {{"slope", {text(call.number("alpha", 0.01))}}}, call.sample(0));
}

void gelu(Call& call) {
  call.give_layer("gelu", {{"approximate", {call.word("approximate", "none")}}}, call.sample(0));
}

void clip_between(Call& call, double low, double high) {
  if (low != 0) throw Unsupported("clips from " + text(low) + "; layers clip from 0");
  if (high == 6) return call.give_layer("relu6", {}, call.sample(0));
  if (high >= std::numeric_limits<float>::max()) return call.give_layer("relu", {}, call.sample(0));
  throw Unsupported("clips at " + text(high) + "; layers clip at 6, or not at all");
}

constexpr double kLowest = std::numeric_limits<float>::lowest(), kHighest = std::numeric_limits<float>::max();

void clip_by_attributes(Call& call) { clip_between(call, call.number("min", kLowest), call.number("max", kHighest)); }

void clip_by_inputs(Call& call) {
  clip_between(call, call.has(1) ? call.scalar(1, "the lower bound") : kLowest,
               call.has(2) ? call.scalar(2, "the upper bound") : kHighest);
}

void over_classes(Call& call, const char* type, int64_t fallback) {
  const Shape row = call.sample(0);
  if (row.size() != 1 || call.axis("axis", fallback, row.size() + 1) != 1) {
    throw Unsupported("takes [N, classes] along its last dimension, has " + to_string(call.data(0).shape));
  }
  call.give_layer(type, {}, row);
}
void softmax_1(Call& call) { over_classes(call, "softmax", 1); }
void softmax_13(Call& call) { over_classes(call, "softmax", -1); }
void log_softmax_1(Call& call) { over_classes(call, "log_softmax", 1); }
void log_softmax_13(Call& call) { over_classes(call, "log_softmax", -1); }

}  // namespace

std::vector<OpRow> activation_rows() {
  return {
      {"Relu", 6, plain_layer<kRelu>},
      {"Sigmoid", 6, plain_layer<kSigmoid>},
      {"Tanh", 6, plain_layer<kTanh>},
      {"LeakyRelu", 6, leaky_relu},
      {"Gelu", 20, gelu},
      {"Clip", 6, clip_by_attributes},
      {"Clip", 11, clip_by_inputs},
      {"Softmax", 1, softmax_1},
      {"Softmax", 13, softmax_13},
      {"LogSoftmax", 1, log_softmax_1},
      {"LogSoftmax", 13, log_softmax_13},
  };
}

}  // namespace gpunn::interchange
