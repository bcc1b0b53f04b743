#include "interchange/onnx/nodes/linear.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

Value weighted(Call& call, const Value& from, const Constant& weights, const Constant* bias) {
  Shape row = row_of(from);
  const int64_t units = weights.shape[0];
  if (row.empty() || row.back() != weights.shape[1] || units < 1) {
    throw Unsupported("its weights don't fit its input " + to_string(from.shape));
  }
  // Layers take tokens [tokens, features]; other dimensions in front of the features are those together.
  Value x = from;
  const int64_t features = row.back();
  const bool has_more = row.size() > 2;
  if (has_more) x = call.reshaped(x, {element_count(row) / features, features});
  Shape tokens = row_of(x);
  row.back() = tokens.back() = units;
  Value y = call.layer("linear", {&x}, {{"units", {std::to_string(units)}}, {"bias", {text(bias != nullptr)}}}, tokens);
  call.set_tensor(y, "weight", weights.shape, weights);
  if (bias != nullptr) call.set_tensor(y, "bias", {units}, *bias);
  return has_more ? call.reshaped(y, row) : y;
}

namespace {

// A constant times a factor.
Constant as_linear(const Constant& constant, double factor) {
  if (factor == 1) return constant;
  std::vector<float> values = *constant.floats;
  for (float& value : values) value = static_cast<float>(factor * static_cast<double>(value));
  return floats_constant(constant.shape, std::move(values));
}

// [units, features] of weights [features, units], or as they are; times a factor.
Constant as_linear(const Constant& weights, bool turned, double factor) {
  const int64_t rows = weights.shape[0], columns = weights.shape[1];
  if (!turned && factor == 1) return weights;
  std::vector<float> values(weights.floats->size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const auto to = static_cast<std::size_t>(turned ? j * rows + i : i * columns + j);
      values[to] = static_cast<float>(factor * (*weights.floats)[static_cast<std::size_t>(i * columns + j)]);
    }
  }
  Constant result = floats_constant(turned ? Shape{columns, rows} : weights.shape, std::move(values));
  if (factor == 1) result.scales = weights.scales;
  return result;
}

// A bias for each unit of what broadcasts to [N, units].
std::optional<Constant> as_bias(const Constant& from, int64_t units, double factor) {
  if (!is_floating(from.element)) return std::nullopt;
  const auto count = static_cast<int64_t>(from.floats->size());
  const int64_t last = from.shape.empty() ? 1 : from.shape.back();
  if (count != last || (count != 1 && count != units)) return std::nullopt;
  std::vector<float> values(static_cast<std::size_t>(units));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(factor * (*from.floats)[count == 1 ? 0 : i]);
  }
  return floats_constant({units}, std::move(values));
}

// As a layer of weights where it is one.
bool give_dense_layer(Call& call) {
  if (!call.input(1).constant || call.input(0).constant || call.integer("transA", 0) != 0) return false;
  const Constant weights = as_floats(*call.input(1).constant);
  const Value& x = call.input(0);
  if (weights.shape.size() != 2 || x.shape.size() != 2) return false;
  const BatchPlace place = place_of(x);
  if (place.dimension == 1) return false;
  const Constant turned = as_linear(weights, call.integer("transB", 0) == 0, call.number("alpha", 1));
  std::optional<Constant> bias;
  if (call.has(2)) {
    if (!call.input(2).constant) return false;
    bias = as_bias(as_floats(*call.input(2).constant), turned.shape[0], call.number("beta", 1));
    if (!bias) return false;
  }
  const Value y = weighted(call, batch_first(call, x), turned, bias ? &*bias : nullptr);
  call.give(place == BatchPlace() ? y : placed(call, y, place, 2));
  return true;
}

Value turned(Call& call, const Value& x) {
  if (!x.constant) return moved(call, x, {1, 0});
  return constant_value(transposed_constant(call, *x.constant, {1, 0}));
}

// alpha a' b' + beta c
void gemm(Call& call) {
  if (give_dense_layer(call)) return;
  const Value &a = call.input(0), &b = call.input(1);
  if (a.shape.size() != 2 || b.shape.size() != 2) throw Unsupported("is no product of two matrices");
  const Value product = matrix_product_of(call, call.integer("transA", 0) != 0 ? turned(call, a) : a,
                                          call.integer("transB", 0) != 0 ? turned(call, b) : b);
  const auto scaled = [&](const Value& x, double factor) {
    return factor == 1 ? x : product_of(call, x, number(static_cast<float>(factor)));
  };
  const Value y = scaled(product, call.number("alpha", 1));
  if (!call.has(2)) return call.give(y);
  const double beta = call.number("beta", 1);
  if (!call.input(2).constant) return call.give(sum_of(call, y, scaled(call.input(2), beta)));
  call.give(sum_of(call, y, constant_value(as_linear(as_floats(*call.input(2).constant), beta))));
}

// A constant that is one matrix for all samples.
std::optional<Constant> as_matrix(const Value& value) {
  if (!value.constant) return std::nullopt;
  Constant matrix = as_floats(*value.constant);
  const std::size_t rank = matrix.shape.size();
  if (rank < 2 || element_count(Shape(matrix.shape.begin(), matrix.shape.end() - 2)) != 1) return std::nullopt;
  matrix.shape.erase(matrix.shape.begin(), matrix.shape.end() - 2);
  return matrix;
}

// Whether a constant matrix of this many dimensions leaves those of the data as they are, and the batch is in front of
// its last dimensions.
bool is_of_weights(const Value& x, const Value& matrix, std::size_t last) {
  const BatchPlace place = place_of(x);
  return x.shape.size() >= matrix.shape.size() && x.shape.size() >= 2 &&
         (place.is_outside() || place.dimension + last < x.shape.size());
}

// x times weights; a sum with a constant behind it is the bias.
void product_with_weights(Call& call, const Value& x, const Constant& weights) {
  const Constant turned = as_linear(weights, true, 1);
  const std::string& output = call.node().outputs.front();
  const FileNode* sum = call.importer().only_reader(output);
  std::optional<Constant> bias;
  if (sum != nullptr && sum->op == "Add" && sum->domain.empty() && sum->inputs.size() == 2 &&
      sum->outputs.size() == 1) {
    const Value* other = call.importer().find_value(sum->inputs[sum->inputs[0] == output ? 1 : 0]);
    const bool keeps_rank = other != nullptr && other->constant && other->shape.size() <= x.shape.size();
    if (keeps_rank && is_floating(other->element)) bias = as_bias(as_floats(*other->constant), turned.shape[0], 1);
  }
  const BatchPlace place = place_of(x);
  Value y = weighted(call, batch_first(call, x), turned, bias ? &*bias : nullptr);
  if (place != BatchPlace()) y = placed(call, y, place, x.shape.size());
  call.give(y);
  if (bias) {
    call.importer().take_in(*sum);
    call.importer().set_value(sum->outputs.front(), y);
  }
}

void matmul(Call& call) {
  const Value &a = call.input(0), &b = call.input(1);
  if (const std::optional<Constant> weights = as_matrix(b); weights && is_of_weights(a, b, 1)) {
    return product_with_weights(call, a, *weights);
  }
  const std::optional<Constant> weights = as_matrix(a);
  if (!weights || !is_of_weights(b, a, 2)) return call.give(matrix_product_of(call, a, b));
  // Weights [M, K] times x[..., K, L].
  const BatchPlace place = place_of(b);
  const Value x = batch_first(call, b);
  std::vector<int64_t> order(row_of(x).size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 2], order.back());
  const Value y = call.transposed(weighted(call, call.transposed(x, order), *weights, nullptr), order);
  call.give(place == BatchPlace() ? y : placed(call, y, place, b.shape.size()));
}

}  // namespace

std::vector<OpRow> linear_rows() { return {{"Gemm", 6, gemm}, {"MatMul", 1, matmul}}; }

}  // namespace gpunn::interchange
