// Each composite op is what it is made of: its oracle against the oracle of its decomposition.
#include <cmath>

#include "catch.hpp"
#include "conformance/cases/case.hpp"
#include "evaluate.hpp"
#include "graph/op_info.hpp"

using namespace gpunn;
using namespace gpunn::conformance;

namespace {

bool equal(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-12 * (1 + std::abs(a));
}

// The composite's outputs from its core ops.
std::vector<OracleTensor> decomposed(const graph::OpSignature& signature, const std::vector<OracleTensor>& inputs) {
  graph::Graph program;
  conformance_test::ValueMap values;
  std::vector<graph::ValueId> ids;
  for (const OracleTensor& input : inputs) {
    ids.push_back(program.add_value("input", input.type, graph::Storage::arena));
    values[ids.back()] = input;
  }
  program.add(signature.op, "composite", signature.attrs, ids);
  const graph::Node node = program.nodes().front();
  program.nodes().clear();
  graph::op_info(signature.op).decompose(program, node);
  REQUIRE(program.nodes().size() > 1);
  for (const graph::Node& core : program.nodes()) REQUIRE_FALSE(graph::op_info(core.op).composite());
  conformance_test::evaluate(program, values);
  std::vector<OracleTensor> outputs;
  for (const graph::ValueId id : node.outputs) outputs.push_back(values.at(id));
  return outputs;
}

}  // namespace

TEST_CASE("a composite equals its decomposition") {
  int tested = 0;
  for (const Case& test : all_cases()) {
    const graph::OpInfo& info = graph::op_info(test.signature.op);
    if (!info.composite() || test.signature.inputs[0].elements() > 20000) continue;
    Random random(1, test.name);
    const std::vector<OracleTensor> inputs = test.inputs(random);
    const std::vector<OracleTensor> whole = run_oracle(test.signature, inputs);
    const std::vector<OracleTensor> parts = decomposed(test.signature, inputs);
    INFO(info.name << " " << test.name);
    REQUIRE(whole.size() == parts.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      CHECK(whole[i].type == parts[i].type);
      std::size_t different = 0;
      for (std::size_t j = 0; j < whole[i].values.size(); ++j) {
        different += equal(whole[i].values[j], parts[i].values[j]) ? 0 : 1;
      }
      CHECK(different == 0);
    }
    ++tested;
  }
  CHECK(tested > 100);
}
