// Layers that are written in several ops compute what PyTorch's compute in float64; tests/fixtures/layers.py says what
// that is.
#include <gpunn/experiment.hpp>

#include <cmath>

#include "catch.hpp"
#include "nn/model.hpp"
#include "nn/support.hpp"
#include "ops/evaluate.hpp"
#include "ops/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::conformance;
using namespace gpunn::testing;

namespace {

ReferenceTensor f32_tensor(const json& j) {
  return {{DType::f32, j.at("shape").get<Shape>()}, j.at("values").get<std::vector<double>>()};
}

}  // namespace

TEST_CASE("layers of several ops give what PyTorch gives in float64") {
  const json cases = fixture("layers.json");
  CHECK(cases.size() >= 9);
  for (const json& one : cases) {
    const auto layers = one.at("layers").get<std::string>();
    INFO(layers);
    const ReferenceTensor x = f32_tensor(one.at("x")), expected = f32_tensor(one.at("y"));
    const Shape sample(x.type.shape.begin() + 1, x.type.shape.end());
    const nn_test::Built built(nn_test::model_of(layers), sample, true, x.type.shape[0]);

    ops_test::ValueMap values{{built.x, x}};
    REQUIRE(built.parameters.size() == one.at("parameters").size());
    std::size_t next = 0;
    for (graph::ValueId id = 0; id < static_cast<graph::ValueId>(built.graph.values().size()); ++id) {
      if (built.graph.value(id).storage != graph::Storage::parameters) continue;
      if (built.graph.value(id).view_of != graph::kNoValue) continue;
      values[id] = f32_tensor(one.at("parameters").at(next++));
      CHECK(values[id].type == built.graph.value(id).type);
    }
    ops_test::evaluate(built.graph, values);
    const ReferenceTensor found = ops_test::tensor_at(built.graph, values, built.y);
    REQUIRE(found.type == expected.type);
    for (std::size_t i = 0; i < found.values.size(); ++i) {
      CHECK(std::abs(found.values[i] - expected.values[i]) < 1e-7);  // epsilon is a float
    }
  }
}
