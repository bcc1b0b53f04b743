// Muon's ops, run by the float64 reference, take the steps of PyTorch's Muon; tests/fixtures/muon.py says how those
// came.
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "ops/reference.hpp"
#include "program/optimizer_ops.hpp"

using namespace gpunn;
using namespace gpunn::training;
using nlohmann::json;

namespace {

// A program's values in float64, views of a value being a part of it.
class Interpreter {
 public:
  explicit Interpreter(const graph::Graph& graph) : graph_(graph) {}

  std::vector<double>& root(graph::ValueId id) {
    const graph::ValueId of = graph_.root(id);
    std::vector<double>& values = roots_[of];
    values.resize(static_cast<std::size_t>(graph_.value(of).type.elements()));
    return values;
  }

  void run() {
    for (const graph::Node& node : graph_.nodes()) {
      std::vector<ops::ReferenceTensor> inputs;
      for (const graph::ValueId input : node.inputs) {
        const std::vector<double>& all = root(input);
        inputs.push_back({graph_.value(input).type, {all.begin() + first(input), all.begin() + last(input)}});
      }
      const auto outputs = ops::run_reference(graph_.signature(node), inputs);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        std::ranges::copy(outputs[i].values, root(node.outputs[i]).begin() + first(node.outputs[i]));
      }
    }
  }

 private:
  std::ptrdiff_t first(graph::ValueId id) const {
    return static_cast<std::ptrdiff_t>(graph_.root_offset(id) / static_cast<int64_t>(sizeof(float)));
  }
  std::ptrdiff_t last(graph::ValueId id) const { return first(id) + graph_.value(id).type.elements(); }

  const graph::Graph& graph_;
  std::map<graph::ValueId, std::vector<double>> roots_;
};

}  // namespace

TEST_CASE("Muon's steps are PyTorch's") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/muon.json");
  const json cases = json::parse(file);
  REQUIRE(cases.size() == 3);
  for (const json& one : cases) {
    Experiment experiment;
    OptimizerConfig& o = experiment.optimizer;
    Muon muon;
    muon.momentum = 0.95;
    muon.nesterov = one.at("nesterov").get<bool>();
    muon.scale = one.at("scale") == "original" ? MuonScale::original : MuonScale::match_rms_adamw;
    o.kind = muon;
    o.weight_decay = one.at("weight_decay").get<double>();
    INFO(one.at("scale") << ", nesterov " << muon.nesterov << ", decay " << o.weight_decay);

    const std::vector<std::string> names = {"tall.weight", "wide.weight", "conv.weight", "tall.bias"};
    std::vector<nn::Parameter> parameters;
    for (const std::string& name : names) {
      parameters.push_back({.name = name,
                            .shape = one.at("shapes").at(name).get<Shape>(),
                            .init = nn::InitKind::zeros,
                            .fan_in = 0,
                            .decayed = name.ends_with("weight")});
    }
    std::vector<UpdateRule> rules = update_rules(parameters, experiment);
    const ParameterLayout layout = lay_out(parameters, std::move(rules), 64);
    REQUIRE(layout.ranges.size() == 2);

    graph::Graph g;
    const UpdateValues values{.parameters = g.add_value("parameters", layout.type(), graph::Storage::parameters),
                              .gradients = g.add_value("gradients", layout.trained_type(), graph::Storage::gradients),
                              .rate = g.add_value("rate", {DType::f32, {}}, graph::Storage::state),
                              .step = g.add_value("step", {DType::i64, {}}, graph::Storage::state)};
    add_optimizer(g, o, layout, values);
    Interpreter run(g);
    const auto place = [&](std::size_t p) { return static_cast<std::ptrdiff_t>(layout.offset[p]); };
    for (std::size_t p = 0; p < names.size(); ++p) {
      std::ranges::copy(one.at("start").at(names[p]).get<std::vector<double>>(),
                        run.root(values.parameters).begin() + place(p));
    }
    for (int t = 0; t < 10; ++t) {
      for (std::size_t p = 0; p < names.size(); ++p) {
        for (int64_t i = 0; i < element_count(parameters[p].shape); ++i) {
          const auto d = static_cast<double>(i);
          run.root(values.gradients)[static_cast<std::size_t>(layout.offset[p] + i)] =
              std::cos(1.3 * t + 0.7 * d + static_cast<double>(p)) / (1 + d);
        }
      }
      run.root(values.rate).at(0) = 0.05 / (1 + 0.02 * t);
      run.root(values.step).at(0) = t;
      run.run();
      for (std::size_t p = 0; p < names.size(); ++p) {
        const auto expected = one.at("weights").at(static_cast<std::size_t>(t)).at(names[p]).get<std::vector<double>>();
        double off = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double found = run.root(values.parameters)[static_cast<std::size_t>(layout.offset[p]) + i];
          off = std::max(off, std::abs(found - expected[i]));
        }
        INFO(names[p] << " after step " << t + 1);
        CHECK(off < 1e-6);
      }
    }
  }
}
