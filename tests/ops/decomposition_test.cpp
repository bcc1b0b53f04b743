// Each op is what it is made of: its reference against the references of its decomposition.
#include <cmath>
#include <set>

#include "catch.hpp"
#include "compiler/decompose.hpp"
#include "ops/case.hpp"
#include "ops/evaluate.hpp"
#include "ops/op.hpp"

using namespace gpunn;
using namespace gpunn::ops;

namespace {

bool equal(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance * (1 + std::abs(a));
}

// Appends the node's parts, theirs, and so on.
bool append_core(graph::Graph& program, const graph::Node& node) {
  graph::Graph whole = program;
  whole.nodes().clear();
  if (!compiler::append_parts(whole, node)) return false;
  const std::vector<graph::Node> parts = std::move(whole.nodes());
  whole.nodes() = std::move(program.nodes());
  program = std::move(whole);
  for (const graph::Node& part : parts) {
    if (!append_core(program, part)) program.nodes().push_back(part);
  }
  return true;
}

// The op's outputs from core ops; none where these shapes can't be composed.
std::vector<ReferenceTensor> decomposed(const graph::OpSignature& signature,
                                        const std::vector<ReferenceTensor>& inputs) {
  graph::Graph program;
  ops_test::ValueMap values;
  std::vector<graph::ValueId> ids;
  for (const ReferenceTensor& input : inputs) {
    ids.push_back(program.add_value("input", input.type, graph::Storage::arena));
    values[ids.back()] = input;
  }
  program.add(signature.op, "composite", signature.attrs, ids);
  const graph::Node node = program.nodes().front();
  program.nodes().clear();
  if (!append_core(program, node)) return {};
  for (const graph::Node& core : program.nodes()) REQUIRE(ops::op_info(core.op).decompose == nullptr);
  ops_test::evaluate(program, values);
  std::vector<ReferenceTensor> outputs;
  for (const graph::ValueId id : node.outputs) outputs.push_back(values.at(id));
  return outputs;
}

}  // namespace

TEST_CASE("an op equals its decomposition") {
  std::set<int32_t> tested;
  for (const Case& test : all_cases()) {
    const ops::OpInfo& info = ops::op_info(test.signature.op);
    if (info.decompose == nullptr || test.signature.inputs[0].elements() > 20000) continue;
    Random random(1, test.name);
    const std::vector<ReferenceTensor> inputs = test.inputs(random);
    const std::vector<ReferenceTensor> whole = run_reference(test.signature, inputs);
    INFO(info.name << " " << test.name);
    const std::vector<ReferenceTensor> parts = decomposed(test.signature, inputs);
    if (parts.empty()) {
      CHECK(whole[0].values.empty());
      continue;
    }
    REQUIRE(whole.size() == parts.size());
    // A composite's parts have no constants; those of the others are rounded to f32.
    const double tolerance = info.composite ? 1e-12 : 2e-6;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      CHECK(whole[i].type == parts[i].type);
      std::size_t different = 0;
      for (std::size_t j = 0; j < whole[i].values.size(); ++j) {
        if (equal(whole[i].values[j], parts[i].values[j], tolerance)) continue;
        if (different++ == 0)
          UNSCOPED_INFO("output " << i << ", element " << j << ": " << whole[i].values[j] << " and "
                                  << parts[i].values[j]);
      }
      CHECK(different == 0);
    }
    tested.insert(info.id);
  }
  for (const ops::OpInfo* info : ops::all_ops()) {
    INFO(info->name);
    CHECK((info->decompose == nullptr) == (tested.count(info->id) == 0));
  }
}
