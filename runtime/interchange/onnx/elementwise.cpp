#include <algorithm>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// One number for each channel of [N, channels, ...] from a constant that broadcasts to that.
std::vector<float> by_channel(const Constant& from, const Shape& row) {
  const std::size_t rank = row.size() + 1, given = from.shape.size();
  bool fits = is_floating(from.element) && given <= rank;
  for (std::size_t i = 0; fits && i < given; ++i) {
    const std::size_t dimension = rank - given + i;
    fits = from.shape[i] == 1 || (dimension == 1 && from.shape[i] == row[0]);
  }
  if (!fits) {
    throw Unsupported("its constant is " + name_of(from.element) + gpunn::to_string(from.shape) +
                      "; layers take one number, or one for each channel");
  }
  std::vector<float> values(static_cast<std::size_t>(row[0]), from.floats->front());
  if (from.floats->size() > 1) values = *from.floats;
  return values;
}

// x * factor + term by channel, which a batch norm of mean 0 and variance 1 computes.
void affine(Call& call, std::size_t x, std::vector<float> factor, std::vector<float> term) {
  const Shape row = call.sample(x);
  const Shape channels = {row[0]};
  const auto count = static_cast<std::size_t>(row[0]);
  const Value y = call.layer("batch_norm", {&call.data(x)}, {{"epsilon", {"1e-12"}}}, row);
  call.set_tensor(y, "weight", channels, floats_constant(channels, std::move(factor)));
  call.set_tensor(y, "bias", channels, floats_constant(channels, std::move(term)));
  call.set_tensor(y, "running_mean", channels, floats_constant(channels, std::vector<float>(count, 0)));
  call.set_tensor(y, "running_var", channels, floats_constant(channels, std::vector<float>(count, 1)));
  call.give(y);
}

enum class Sum { plus, minus };

void sum_with_constant(Call& call, Sum kind) {
  const std::size_t x = call.input(0).constant ? 1 : 0;
  const Shape row = call.sample(x);
  if (row.empty()) throw Unsupported("takes one number a sample");
  std::vector<float> term = by_channel(call.constant(1 - x, "the term"), row);
  float factor = 1;
  if (kind == Sum::minus && x == 0) {
    for (float& one : term) one = -one;
  } else if (kind == Sum::minus) {
    factor = -1;
  }
  affine(call, x, std::vector<float>(term.size(), factor), term);
}

void add(Call& call) {
  if (call.input(0).constant || call.input(1).constant) return sum_with_constant(call, Sum::plus);
  if (call.sample(0) != call.sample(1)) throw Unsupported("adds values of unlike shapes");
  call.give(call.layer("add", {&call.data(0), &call.data(1)}, {}, call.sample(0)));
}

void subtract(Call& call) {
  if (!call.input(0).constant && !call.input(1).constant) throw Unsupported("no layer subtracts layers");
  sum_with_constant(call, Sum::minus);
}

void multiply(Call& call) {
  if (call.input(0).constant || call.input(1).constant) {
    const std::size_t x = call.input(0).constant ? 1 : 0;
    const Shape row = call.sample(x);
    if (row.empty()) throw Unsupported("takes one number a sample");
    std::vector<float> factor = by_channel(call.constant(1 - x, "the factor"), row);
    const std::vector<float> zeros(factor.size(), 0);
    return affine(call, x, std::move(factor), zeros);
  }
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {  // x * sigmoid(x)
    const LayerSpec* gate = call.importer().find_layer(call.data(i).layer);
    if (gate != nullptr && gate->type == "sigmoid" && gate->from.front() == call.data(1 - i).layer &&
        call.data(0).shape == call.data(1).shape) {
      return call.give(call.layer("silu", {&call.data(1 - i)}, {}, call.sample(0)));
    }
  }
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Shape all = call.sample(i), each = call.sample(1 - i);
    const bool channels = each.size() == all.size() && each.size() > 1 && each[0] == all[0] &&
                          std::all_of(each.begin() + 1, each.end(), [](int64_t size) { return size == 1; });
    if (all == each || channels) {
      return call.give(call.layer("multiply", {&call.data(i), &call.data(1 - i)}, {}, all));
    }
  }
  throw Unsupported("multiplies values of unlike shapes");
}

void divide(Call& call) {
  if (call.input(0).constant || !call.input(1).constant) throw Unsupported("no layer divides by a layer");
  const Shape row = call.sample(0);
  if (row.empty()) throw Unsupported("takes one number a sample");
  std::vector<float> factor = by_channel(call.constant(1, "the divisor"), row);
  for (float& one : factor) one = 1 / one;
  const std::vector<float> zeros(factor.size(), 0);
  affine(call, 0, std::move(factor), zeros);
}

}  // namespace

std::vector<OpRow> elementwise_rows() {
  return {{"Add", 7, add}, {"Sub", 7, subtract}, {"Mul", 7, multiply}, {"Div", 7, divide}};
}

}  // namespace gpunn::interchange
