// Layers of networks that paint, by the reference.
#include <gpunn/error.hpp>
#include <gpunn/experiment.hpp>

#include <string>
#include <vector>

#include "../ops/evaluate.hpp"
#include "catch.hpp"
#include "nn/model.hpp"

using namespace gpunn;

namespace {

// What a model of one layer gives for x, its parameters filled in one after the other.
std::vector<double> output_of(const std::string& layer, const Shape& shape, const std::vector<double>& x,
                              const std::vector<std::vector<double>>& parameters = {}) {
  const ModelSpec model = parse_experiment("model: {layers: [" + layer + "]}\ndata: digits\n", "layer.yaml").model;
  graph::Graph g;
  const graph::ValueId in = g.add_value("x", {DType::f32, shape}, graph::Storage::data);
  ops_test::ValueMap values;
  values[in] = {{DType::f32, shape}, x};
  std::vector<graph::ValueId> given;
  for (const nn::Parameter& parameter : nn::model_parameters(model, Shape(shape.begin() + 1, shape.end()))) {
    given.push_back(g.add_value(parameter.name, {DType::f32, parameter.shape}, graph::Storage::parameters));
    values[given.back()] = {{DType::f32, parameter.shape}, parameters.at(given.size() - 1)};
  }
  const graph::ValueId out = nn::build_forward(g, model, {{.value = in}}, given, {}).front();
  ops_test::evaluate(g, values);
  return values.at(out).values;
}

}  // namespace

TEST_CASE("an image is mirrored at its outermost pixels, as by torch.nn.ReflectionPad2d") {
  // ReflectionPad2d((2, 1, 1, 0)): left, right, top, bottom.
  CHECK(output_of("pad: {padding: [1, 0, 2, 1], mode: reflect}", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}) ==
        std::vector<double>{6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5});
  CHECK(output_of("pad: {padding: 0, mode: reflect}", {1, 1, 1, 2}, {1, 2}) == std::vector<double>{1, 2});
  CHECK_THROWS_WITH(output_of("pad: {padding: 2, mode: reflect}", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}),
                    Contains("less than its own rows and columns") && Contains("[1, 1, 2, 3]"));
}

TEST_CASE("each row is scaled and moved by the numbers of its style") {
  const std::vector<double> x = {1, 3, 1, 3, 1, 3, 1, 3};
  const std::vector<std::vector<double>> numbers = {{2, 10}, {0.5, -1}};
  const auto rows = [&](const std::string& keys, int64_t count) {
    return output_of("conditional_instance_norm: {styles: 2, epsilon: 1e-12" + keys + "}", {count, 1, 1, 2},
                     {x.begin(), x.begin() + 2 * count}, numbers);
  };
  const auto close = [](const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-6));
  };
  close(rows("", 4), {-1.5, 2.5, -11, 9, -1.5, 2.5, -11, 9});
  close(rows("", 1), {-1.5, 2.5});
  close(rows(", style: 1", 3), {-11, 9, -11, 9, -11, 9});
  CHECK_THROWS_WITH(rows("", 3), Contains("3 rows is not a multiple of the 2 styles"));
  CHECK_THROWS_WITH(rows(", style: 2", 2), Contains("less than styles (2), found 2"));
}
