// Tensors in eight bits, as pairs of QuantizeLinear and DequantizeLinear say them (QDQ).
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

constexpr int64_t kSignedShift = 128;  // from int8 to uint8

const Constant* zero_points(const Call& call) { return call.has(2) ? &call.constant(2, "the zero point") : nullptr; }

// Scale and zero point of a whole tensor in uint8.
std::pair<double, int64_t> step_of(const Call& call) {
  const double scale = call.scalar(1, "the scale");
  const Constant* zero = zero_points(call);
  const Element element = zero != nullptr ? zero->element : Element::u8;
  if (element != Element::u8 && element != Element::i8) {
    throw Unsupported("its numbers are " + name_of(element) + "; tensors of uint8 and int8 can be imported");
  }
  if (!(scale > 0)) throw Unsupported("its scale " + text(scale) + " is not above 0");
  int64_t zero_point = zero != nullptr && !zero->integers.empty() ? zero->integers.front().factor : 0;
  if (element == Element::i8) zero_point += kSignedShift;
  return {scale, zero_point};
}

// The numbers stay what they are until DequantizeLinear behind it, which rounds them.
void quantize(Call& call) {
  step_of(call);
  if (!call.importer().only_reader(call.node().outputs.front()) ||
      call.importer().only_reader(call.node().outputs.front())->op != "DequantizeLinear") {
    throw Unsupported("other nodes than one DequantizeLinear read it; a pair of both can be imported");
  }
  call.give(call.data(0));
}

// Of weights: a scale for all, or one for each entry of a dimension.
void dequantize_constant(Call& call) {
  const Constant& q = call.constant(0, "the weights");
  if (is_floating(q.element)) throw Unsupported("its weights are " + name_of(q.element) + ", no integers");
  const Constant& scales = call.floats(1, "the scales");
  const Constant* zeros = zero_points(call);
  const std::size_t count = scales.floats->size();
  std::size_t axis = 0;
  int64_t inner = 1;
  if (count > 1) {
    axis = call.axis("axis", 1, q.shape.size());
    if (q.shape[axis] != static_cast<int64_t>(count)) {
      throw Unsupported("it has " + std::to_string(count) + " scales for a dimension of " +
                        std::to_string(q.shape[axis]));
    }
    for (std::size_t d = axis + 1; d < q.shape.size(); ++d) inner *= q.shape[d];
  }
  if (zeros != nullptr && zeros->integers.size() != count) {
    throw Unsupported("it has " + std::to_string(count) + " scales and " + std::to_string(zeros->integers.size()) +
                      " zero points");
  }
  std::vector<float> values(q.integers.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t k = count > 1 ? i / static_cast<std::size_t>(inner) % count : 0;
    const int64_t zero = zeros != nullptr ? zeros->integers[k].factor : 0;
    values[i] = static_cast<float>(q.integers[i].factor - zero) * (*scales.floats)[k];
  }
  Constant result = floats_constant(q.shape, std::move(values));
  result.trained = q.trained;
  call.give_constant(std::move(result));
}

void dequantize(Call& call) {
  if (call.input(0).constant != nullptr) return dequantize_constant(call);
  const auto [scale, zero_point] = step_of(call);
  call.give_layer("quantize", {{"scale", {text(scale)}}, {"zero_point", {text(static_cast<double>(zero_point))}}},
                  call.sample(0));
}

}  // namespace

std::vector<OpRow> quantization_rows() {
  return {{"QuantizeLinear", 10, quantize}, {"DequantizeLinear", 10, dequantize}};
}

}  // namespace gpunn::interchange
