// Layers that are written in several ops compute what PyTorch's compute in float64, and so do their gradients;
// tests/fixtures/layers.py says what that is.
#include <gpunn/experiment.hpp>

#include <algorithm>
#include <cmath>

#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "graph/expressions.hpp"
#include "nn/model.hpp"
#include "nn/support.hpp"
#include "ops/evaluate.hpp"
#include "ops/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using namespace gpunn::ops;

namespace {

ReferenceTensor f32_tensor(const json& j) {
  return {{DType::f32, j.at("shape").get<Shape>()}, j.at("values").get<std::vector<double>>()};
}

// Up to what the factors in attributes are rounded by, which are floats.
void check_near(const ReferenceTensor& found, const ReferenceTensor& expected, double tolerance) {
  REQUIRE(found.type == expected.type);
  double largest = 0;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    CHECK(std::abs(found.values[i] - expected.values[i]) < tolerance * (1 + largest));
  }
}

// The weights of the outputs in the sum whose gradients the fixture has.
ReferenceTensor output_weights(const TensorType& type) {
  ReferenceTensor weights{type, std::vector<double>(static_cast<std::size_t>(type.elements()))};
  for (std::size_t i = 0; i < weights.values.size(); ++i) weights.values[i] = static_cast<double>(i * 7 % 11) - 5;
  return weights;
}

}  // namespace

TEST_CASE("layers of several ops give what PyTorch gives in float64") {
  const json cases = fixture("layers.json");
  CHECK(cases.size() >= 25);
  for (const json& one : cases) {
    const auto layers = one.at("layers").get<std::string>();
    INFO(layers);
    const double tolerance = one.value("tolerance", 1e-7);
    const ReferenceTensor x = f32_tensor(one.at("x")), expected = f32_tensor(one.at("y"));
    const Shape sample(x.type.shape.begin() + 1, x.type.shape.end());
    nn_test::Built built(nn_test::model_of(layers), sample, true, x.type.shape[0]);

    ops_test::ValueMap values{{built.x, x}};
    std::vector<graph::ValueId> targets{built.x};
    REQUIRE(built.parameters.size() == one.at("parameters").size());
    std::size_t next = 0;
    for (graph::ValueId id = 0; id < static_cast<graph::ValueId>(built.graph.values().size()); ++id) {
      const graph::Value& value = built.graph.value(id);
      if (value.view_of != graph::kNoValue) continue;
      if (value.storage == graph::Storage::state && !values.contains(id)) {  // a constant, of zeros
        values[id] = {value.type, std::vector<double>(static_cast<std::size_t>(value.type.elements()), 0)};
      }
      if (value.storage != graph::Storage::parameters) continue;
      values[id] = f32_tensor(one.at("parameters").at(next++));
      CHECK(values[id].type == built.graph.value(id).type);
      targets.push_back(id);
    }
    const graph::ValueId weights = built.graph.add_value("weights", expected.type, graph::Storage::data);
    values[weights] = output_weights(expected.type);
    graph::Expressions e(built.graph, "sum");
    const graph::ValueId products = e.mul(built.y, weights);
    const auto gradients = compiler::add_gradients(built.graph, e.sum(products, e.all(products), false), targets);
    ops_test::evaluate(built.graph, values);
    check_near(ops_test::tensor_at(built.graph, values, built.y), expected, tolerance);
    REQUIRE(gradients.size() == one.at("gradients").size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      INFO("gradient " << i);
      REQUIRE(gradients[i] != graph::kNoValue);
      check_near(ops_test::tensor_at(built.graph, values, gradients[i]), f32_tensor(one.at("gradients").at(i)),
                 tolerance);
    }
  }
}
