// Operators of quantised tensors that ONNX Runtime's tools write in the domain com.microsoft: an operator of ONNX on
// what the tensors stand for, whose result is quantised again.
#include <array>
#include <string>
#include <string_view>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// A tensor, its scale and its zero point, from an input on.
Value what_is_stored(Call& call, std::size_t tensor, const std::vector<Attribute>& attributes = {}) {
  const Value zero = call.has(tensor + 2) ? call.input(tensor + 2) : Value();
  return call.apply("DequantizeLinear", {call.input(tensor), call.input(tensor + 1), zero}, attributes);
}

Value quantized_again(Call& call, const Value& y, std::size_t scale) {
  const Value zero = call.has(scale + 1) ? call.input(scale + 1) : Value();
  return call.apply("QuantizeLinear", {y, call.input(scale), zero});
}

// Those of the attributes that ONNX's operator has.
std::vector<Attribute> shared_attributes(const Call& call) {
  constexpr std::array<std::string_view, 2> kOwn = {"channels_last", "opset"};
  std::vector<Attribute> attributes;
  for (const Attribute& one : call.node().attributes) {
    if (std::ranges::find(kOwn, one.name) == kOwn.end()) attributes.push_back(one);
  }
  if (call.integer("channels_last", 0) != 0) throw Unsupported("takes channels last, which layers don't");
  return attributes;
}

// "QLinearAdd" is "Add" of `tensors` that come with their scales and zero points, before those of the result.
template <std::size_t tensors>
void compute_quantized(Call& call) {
  constexpr std::string_view kPrefix = "QLinear";
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < tensors; ++i) inputs.push_back(what_is_stored(call, 3 * i));
  const Value y = call.apply(call.node().op.substr(kPrefix.size()), inputs, shared_attributes(call));
  call.give(quantized_again(call, y, 3 * tensors));
}

void join_quantized(Call& call) {
  std::vector<Value> inputs;
  for (std::size_t i = 2; i + 1 < call.count(); i += 3) inputs.push_back(what_is_stored(call, i));
  call.give(quantized_again(call, call.apply("Concat", inputs, shared_attributes(call)), 0));
}

// Up to opset 12 over all dimensions from `axis` on.
void quantized_softmax(Call& call) {
  constexpr int64_t kOneDimension = 13;
  const auto rank = static_cast<int64_t>(call.input(0).shape.size());
  const int64_t axis = call.integer("axis", -1);
  if (call.integer("opset", kOneDimension) < kOneDimension && axis != -1 && axis != rank - 1) {
    throw Unsupported("is over several dimensions; export with opset 13");
  }
  compute_quantized<1>(call);
}

// alpha a' b' + c, where the scale of c is that of a times that of b.
void quantized_gemm(Call& call) {
  enum : std::size_t { kA, kAScale, kB = 3, kBScale, kC = 6, kYScale };
  const Attribute columns{.name = "axis", .reference = {}, .value = int64_t{call.integer("transB", 0) != 0 ? 0 : 1}};
  std::vector<Value> inputs = {what_is_stored(call, kA), what_is_stored(call, kB, {columns})};
  if (call.has(kC)) {
    const Value scale = call.apply("Mul", {call.input(kAScale), call.input(kBScale)});
    const Attribute first{.name = "axis", .reference = {}, .value = int64_t{0}};
    inputs.push_back(call.apply("DequantizeLinear", {call.input(kC), scale}, {first}));
  }
  const Value y = call.apply("Gemm", inputs, shared_attributes(call));
  call.give(call.has(kYScale) ? quantized_again(call, y, kYScale) : y);
}

}  // namespace

std::vector<OpRow> quantized_operator_rows() {
  return {{"com.microsoft.QLinearAdd", 1, compute_quantized<2>},
          {"com.microsoft.QLinearMul", 1, compute_quantized<2>},
          {"com.microsoft.QLinearSigmoid", 1, compute_quantized<1>},
          {"com.microsoft.QLinearLeakyRelu", 1, compute_quantized<1>},
          {"com.microsoft.QLinearAveragePool", 1, compute_quantized<1>},
          {"com.microsoft.QLinearGlobalAveragePool", 1, compute_quantized<1>},
          {"com.microsoft.QLinearSoftmax", 1, quantized_softmax},
          {"com.microsoft.QLinearConcat", 1, join_quantized},
          {"com.microsoft.QGemm", 1, quantized_gemm}};
}

}  // namespace gpunn::interchange
