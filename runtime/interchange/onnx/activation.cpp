#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "interchange/onnx/elements.hpp"
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
constexpr char kSoftplus[] = "softplus";
constexpr char kSoftsign[] = "softsign";
constexpr char kMish[] = "mish";
constexpr char kHardSwish[] = "hard_swish";
constexpr char kAbs[] = "abs";
constexpr char kExp[] = "exp";
constexpr char kLog[] = "log";
constexpr char kErf[] = "erf";

void leaky_relu(Call& call) {
  call.give_layer("leaky_relu", {{"slope", {text(call.number("alpha", 0.01))}}}, call.sample(0));
}

void elu(Call& call) { call.give_layer("elu", {{"alpha", {text(call.number("alpha", 1))}}}, call.sample(0)); }
void celu(Call& call) { call.give_layer("celu", {{"alpha", {text(call.number("alpha", 1))}}}, call.sample(0)); }

// Of ONNX's own constants, which other ones than those of the paper replace at times.
void selu(Call& call) {
  constexpr double kAlpha = 1.67326319217681884765625, kScale = 1.05070102214813232421875, kNear = 1e-6;
  const double alpha = call.number("alpha", kAlpha), scale = call.number("gamma", kScale);
  if (std::abs(alpha - kAlpha) > kNear || std::abs(scale - kScale) > kNear) {
    throw Unsupported("its alpha " + text(alpha) + " and gamma " + text(scale) + " are not those of SELU");
  }
  call.give_layer("selu", {}, call.sample(0));
}

// x * sigmoid(alpha * x).
void swish(Call& call) {
  const Shape row = call.sample(0);
  const double alpha = call.number("alpha", 1);
  if (alpha == 1) return call.give_layer("silu", {}, row);
  const Value scaled = call.scaled(call.data(0), alpha);
  const Value gate = call.layer("sigmoid", {&scaled}, {}, row);
  call.give(call.layer("multiply", {&call.data(0), &gate}, {}, row));
}

void hard_sigmoid(Call& call) {
  call.give_layer("hard_sigmoid",
                  {{"slope", {text(call.number("alpha", 0.2))}}, {"offset", {text(call.number("beta", 0.5))}}},
                  call.sample(0));
}

// 1 - erf(x). ONNX has no such operator; tf2onnx writes it for the GELU of Keras.
void erfc(Call& call) {
  const Shape row = call.sample(0);
  const Value erf = call.layer("erf", {&call.data(0)}, {}, row);
  const Value y = call.layer("affine", {&erf}, {{"shape", {"1"}}, {"trained", {"false"}}}, row);
  call.set_tensor(y, "weight", {1}, floats_constant({1}, {-1}));
  call.set_tensor(y, "bias", {1}, floats_constant({1}, {1}));
  call.give(y);
}

void prelu(Call& call) {
  const Constant& slope = call.floats(1, "the slopes");
  const Shape row = call.sample(0);
  const auto count = static_cast<int64_t>(slope.floats->size());
  // A number for each channel is [C, 1, 1] of rows [C, H, W].
  const std::size_t rank = slope.shape.size();
  constexpr int64_t kByChannel = 6;  // up to this opset [C] is that
  const bool by_channel =
      !row.empty() && count == row[0] &&
      (call.opset() <= kByChannel || (rank >= row.size() && slope.shape[rank - row.size()] == row[0]));
  if (count != 1 && !by_channel) {
    throw Unsupported("its slopes are " + gpunn::to_string(slope.shape) + "; layers take one, or one a channel");
  }
  const bool channels = count != 1;
  const Value y = call.layer("prelu", {&call.data(0)}, {{"channels", {text(channels)}}}, row);
  call.set_tensor(y, "weight", {channels ? row[0] : 1}, slope);
  call.give(y);
}

void gelu(Call& call) {
  call.give_layer("gelu", {{"approximate", {call.word("approximate", "none")}}}, call.sample(0));
}

constexpr double kLowest = std::numeric_limits<float>::lowest(), kHighest = std::numeric_limits<float>::max();

void clip_between(Call& call, double low, double high) {
  if (low == 0 && high == 6) return call.give_layer("relu6", {}, call.sample(0));
  if (low == 0 && high >= kHighest) return call.give_layer("relu", {}, call.sample(0));
  if (!(low <= high)) throw Unsupported("clips from " + text(low) + " to " + text(high));
  constexpr double kLargest = 3.4e38;  // that the layer takes
  call.give_layer("clamp", {{"low", {text(std::max(low, -kLargest))}}, {"high", {text(std::min(high, kLargest))}}},
                  call.sample(0));
}

void clip_by_attributes(Call& call) { clip_between(call, call.number("min", kLowest), call.number("max", kHighest)); }

void clip_by_inputs(Call& call) {
  clip_between(call, call.has(1) ? call.scalar(1, "the lower bound") : kLowest,
               call.has(2) ? call.scalar(2, "the upper bound") : kHighest);
}

// Along a dimension of a row, which is the last one for it.
Value along_last(Call& call, const char* type, const Value& x, std::size_t dimension) {
  std::vector<int64_t> order(x.shape.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[dimension], order.back());  // its own inverse
  const Value turned = call.transposed(x, order);
  const Shape row = row_of(turned);
  const Keys keys = row.size() == 1 ? Keys() : Keys{{"over", {"last"}}};
  return call.transposed(call.layer(type, {&turned}, keys, row), order);
}

// Up to opset 12 over all dimensions from `axis` on together.
void over_classes(Call& call, const char* type, int64_t fallback) {
  const Shape row = call.sample(0);
  const std::size_t axis = call.axis("axis", fallback, row.size() + 1);
  if (axis == 0) throw Unsupported("is over the batch");
  constexpr int64_t kOneDimension = 13;
  if (call.opset() >= kOneDimension) return call.give(along_last(call, type, call.data(0), axis - 1));
  call.require_batch_before(row.size() + 1 - axis);
  Shape together(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(axis));
  together.back() = element_count(Shape(row.begin() + static_cast<std::ptrdiff_t>(axis) - 1, row.end()));
  const Value flat = call.reshaped(call.data(0), together);
  call.give(call.reshaped(along_last(call, type, flat, axis - 1), row));
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
      {"PRelu", 6, prelu},
      {"Elu", 6, elu},
      {"Selu", 6, selu},
      {"Celu", 12, celu},
      {"Softplus", 1, plain_layer<kSoftplus>},
      {"Softsign", 1, plain_layer<kSoftsign>},
      {"Mish", 18, plain_layer<kMish>},
      {"HardSigmoid", 6, hard_sigmoid},
      {"HardSwish", 14, plain_layer<kHardSwish>},
      {"Swish", 24, swish},
      {"Abs", 6, plain_layer<kAbs>},
      {"Exp", 6, plain_layer<kExp>},
      {"Log", 6, plain_layer<kLog>},
      {"Erf", 9, plain_layer<kErf>},
      {"Erfc", 6, erfc},
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
