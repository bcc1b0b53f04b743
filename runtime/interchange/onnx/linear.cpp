#include "interchange/onnx/linear.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "interchange/onnx/elements.hpp"

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

void gemm(Call& call) {
  const Constant& weights = call.floats(1, "the weights");
  if (weights.shape.size() != 2 || call.integer("transA", 0) != 0 ||
      call.sample(0).size() != 1 + call.place().shift()) {
    throw Unsupported("is no product of [N, features] and weights");
  }
  call.require_batch_before(1);
  const Constant turned = as_linear(weights, call.integer("transB", 0) == 0, call.number("alpha", 1));
  std::optional<Constant> bias;
  if (call.has(2)) {
    bias = as_bias(call.constant(2, "the bias"), turned.shape[0], call.number("beta", 1));
    if (!bias) throw Unsupported("its bias is not one number for each unit");
  }
  call.give(weighted(call, call.data(0), turned, bias ? &*bias : nullptr));
}

// A matrix for all samples.
Constant as_matrix(const Constant& factor) {
  const std::size_t rank = factor.shape.size();
  if (rank < 2 || element_count(Shape(factor.shape.begin(), factor.shape.end() - 2)) != 1) {
    throw Unsupported("its constant factor is " + gpunn::to_string(factor.shape) + "; layers take one matrix");
  }
  Constant matrix = factor;
  matrix.shape.erase(matrix.shape.begin(), matrix.shape.end() - 2);
  return matrix;
}

// The matrices of two layers.
void product_of_layers(Call& call) {
  const Shape a = call.sample(0), b = call.sample(1);
  const std::size_t rank = a.size();
  call.require_batch_before(2);
  bool fits = rank >= 2 && b.size() == rank && a[rank - 1] == b[rank - 2];
  Shape row;
  for (std::size_t i = 0; fits && i + 2 < rank; ++i) {
    fits = a[i] == b[i] || a[i] == 1 || b[i] == 1;
    row.push_back(std::max(a[i], b[i]));
  }
  if (!fits) {
    throw Unsupported("takes values of " + to_string(call.data(0).shape) + " and " + to_string(call.data(1).shape) +
                      "; layers take [N, ..., M, K] and [N, ..., K, L]");
  }
  row.insert(row.end(), {a[rank - 2], b[rank - 1]});
  call.give(call.layer("matmul", {&call.data(0), &call.data(1)}, {}, row));
}

// Weights [M, K] times x[..., K, L].
void product_with_weights_first(Call& call) {
  const Constant weights = as_matrix(call.floats(0, "the first factor"));
  const Value& x = call.data(1);
  call.require_batch_before(2);
  const std::size_t rank = row_of(x).size();
  if (rank < 2) throw Unsupported("its second factor is " + to_string(x.shape) + "; layers take matrices");
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[rank - 2], order[rank - 1]);
  call.give(call.transposed(weighted(call, call.transposed(x, order), weights, nullptr), order));
}

void matmul(Call& call) {
  if (call.input(0).constant) return product_with_weights_first(call);
  if (!call.input(1).constant) return product_of_layers(call);
  call.require_batch_before(1);
  const Constant turned = as_linear(as_matrix(call.floats(1, "the second factor")), true, 1);
  // A sum with a constant behind it is the bias.
  const std::string& output = call.node().outputs.front();
  const FileNode* sum = call.importer().only_reader(output);
  std::optional<Constant> bias;
  if (sum != nullptr && sum->op == "Add" && sum->domain.empty() && sum->inputs.size() == 2 &&
      sum->outputs.size() == 1) {
    const Value* other = call.importer().find_value(sum->inputs[sum->inputs[0] == output ? 1 : 0]);
    if (other != nullptr && other->constant) bias = as_bias(*other->constant, turned.shape[0], 1);
  }
  const Value y = weighted(call, call.data(0), turned, bias ? &*bias : nullptr);
  call.give(y);
  if (bias) {
    call.importer().take_in(*sum);
    call.importer().set_value(sum->outputs.front(), call.in_place(y));
  }
}

}  // namespace

std::vector<OpRow> linear_rows() { return {{"Gemm", 6, gemm}, {"MatMul", 1, matmul}}; }

}  // namespace gpunn::interchange
