// The losses of style transfer, as numbers worked out by hand, and what the layers of known networks see.
#include "tasks/style/losses.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../ops/evaluate.hpp"
#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "nn/frozen/frozen_network.hpp"
#include "nn/frozen/known_networks.hpp"

using namespace gpunn;
using graph::ValueId;

namespace {

// What a formula gives for x.
template <class Formula>
std::vector<double> of(const Shape& shape, const std::vector<double>& x, const Formula& formula) {
  graph::Graph g;
  const ValueId in = g.add_value("x", {DType::f32, shape}, graph::Storage::data);
  graph::Expressions e(g, "loss");
  const ValueId out = formula(e, in);
  ops_test::ValueMap values;
  values[in] = {{DType::f32, shape}, x};
  ops_test::evaluate(g, values);
  return values.at(out).values;
}

}  // namespace

TEST_CASE("a Gram matrix has the products of channels, for each row") {
  const std::vector<double> gram =
      of({2, 2, 1, 2}, {1, 2, 3, 4, 1, 0, 0, 1}, [](auto& e, ValueId x) { return tasks::gram_matrix(e, x); });
  // Divided by two channels and two places.
  const std::vector<double> expected = {5.0 / 4, 11.0 / 4, 11.0 / 4, 25.0 / 4, 1.0 / 4, 0, 0, 1.0 / 4};
  REQUIRE(gram.size() == expected.size());
  for (std::size_t i = 0; i < gram.size(); ++i) CHECK(gram[i] == Approx(expected[i]));
}

TEST_CASE("total variation is the mean square of neighbours' differences, down and across") {
  const auto variation = [](auto& e, ValueId x) { return tasks::total_variation(e, x); };
  CHECK(of({1, 1, 2, 3}, {0, 1, 3, 2, 2, 2}, variation) == std::vector<double>{(4.0 + 1 + 1) / 3 + (1.0 + 4) / 4});
  CHECK(of({1, 1, 1, 3}, {0, 1, 3}, variation) == std::vector<double>{(1.0 + 4) / 2});
  CHECK(of({1, 1, 1, 1}, {5}, variation) == std::vector<double>{0});
}

TEST_CASE("a target for all rows is compared with each of them") {
  const std::vector<double> losses = of({2, 2}, {1, 3, 5, 7}, [](auto& e, ValueId x) {
    return tasks::mean_square(e, x, e.constant(1, {1, 2}));
  });
  CHECK(losses == std::vector<double>{2, 26});
}

TEST_CASE("receptive fields are those of the networks") {
  const auto field = [](const char* network, const char* layer) {
    return nn::receptive_field(nn::known_model(nn::known_network(network)), layer);
  };
  CHECK(field("vgg19", "relu1_1") == 3);
  CHECK(field("vgg19", "relu2_1") == 10);
  CHECK(field("vgg19", "relu3_1") == 24);
  CHECK(field("vgg19", "relu4_1") == 68);
  CHECK(field("vgg19", "relu5_1") == 156);
  CHECK(field("squeezenet", "relu1") == 3);
  CHECK(field("squeezenet", "fire4") == 23);
}

TEST_CASE("a network ends behind the last layer that is used") {
  const ModelSpec whole = nn::known_model(nn::known_network("vgg19"));
  CHECK(nn::model_up_to(whole, {"relu2_1", "relu1_1"}).layers.back().name == "relu2_1");
  CHECK_THROWS_WITH(nn::model_up_to(whole, {"relu2_7"}), Contains("no layer 'relu2_7'") && Contains("relu2_1"));
  CHECK_THROWS_WITH(nn::known_network("vgg18"), Contains("vgg19"));
}

TEST_CASE("gradients pass through a frozen network to what it sees, and it is there once for several images") {
  const ModelSpec model = nn::model_up_to(nn::known_model(nn::known_network("drawn")), {"relu2"});
  const nn::FrozenNetwork network =
      nn::frozen_network("drawn", model, nn::seen_colours(FeatureColours::centred), nn::frozen_tensors("drawn", model));
  graph::Graph g;
  const TensorType image{DType::f32, {1, 3, 8, 9}};
  const ValueId painted = g.add_value("painted", image, graph::Storage::parameters);
  const ValueId target = g.add_value("target", image, graph::Storage::data);
  nn::FrozenLayers layers(g, network);
  graph::Expressions e(g, "loss");
  const std::map<std::string, ValueId> seen = layers.look_at(target, {"relu1"});
  CHECK_FALSE(seen.contains("conv2"));  // nothing behind what is wanted is computed
  CHECK(layers.look_at(target, {"relu1", "relu2"}).contains("conv2"));
  const ValueId loss = tasks::mean_square(e, layers.look_at(painted, {"relu1"}).at("relu1"), seen.at("relu1"));
  const ValueId gradient = compiler::add_gradients(g, e.view(loss, {}), {painted}).front();
  REQUIRE(gradient != graph::kNoValue);
  CHECK(g.value(gradient).type == image);
  int constants = 0;
  for (const graph::Value& value : g.values())
    constants += value.name.starts_with("drawn.") && value.storage == graph::Storage::data;
  CHECK(constants == 6);  // scale, shift, weights and biases of two convolutions
}
