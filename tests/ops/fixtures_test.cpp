// The references compute what PyTorch computes in float64; tests/fixtures/ops.py and optimizers.py say what that is.
#include "ops/fixtures.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "catch.hpp"
#include "ops/op.hpp"
#include "ops/reference.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using ops::ReferenceTensor;

namespace {

ReferenceTensor tensor_from(const json& j) {
  const DType dtype = j.at("dtype") == "i32" ? DType::i32 : DType::f32;
  return {{dtype, j.at("shape").get<Shape>()}, j.at("values").get<std::vector<double>>()};
}

// The largest difference in units of the largest value.
double distance(const std::vector<double>& expected, const std::vector<double>& found) {
  REQUIRE(expected.size() == found.size());
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(expected[i] - found[i]);
    off = std::isnan(difference) ? 1e300 : std::max(off, difference);
  }
  return off == 0 ? 0 : off / largest;
}

std::vector<ReferenceTensor> run(int32_t op, const graph::Attributes& attrs,
                                 const std::vector<ReferenceTensor>& inputs) {
  graph::OpSignature signature{.op = op, .attrs = attrs, .inputs = {}, .outputs = {}};
  for (const ReferenceTensor& input : inputs) signature.inputs.push_back(input.type);
  signature.outputs = ops::op_info(op).infer(attrs, signature.inputs);
  return run_reference(signature, inputs);
}

// What the optimizer keeps beside the weights: inputs that are outputs too, a velocity only where there is a momentum.
std::size_t states_of(const ops::Signature& signature, const json& attrs) {
  return static_cast<std::size_t>(std::ranges::count_if(signature.outputs, [&](const ops::Pattern& output) {
    return output.in_place > 0 && (!output.optional || attrs.at("momentum").get<double>() != 0);
  }));
}

// Ops that PyTorch has no like of: they are about gpunn's own batches, counters and metrics, or random by gpunn's own
// layout of Philox; and those that only place values. tests/ops/reference_test.cpp has them.
const std::set<int32_t> kOwn{
    GPUNN_OP_COPY, GPUNN_OP_FILL, GPUNN_OP_RANDOM_UNIFORM, GPUNN_OP_RANDOM_NORMAL, GPUNN_OP_DROPOUT,
    GPUNN_OP_RANDOM_SHIFT, GPUNN_OP_RANDOM_AFFINE, GPUNN_OP_RANDOM_COLOR, GPUNN_OP_RANDOM_ERASE, GPUNN_OP_MIX_ROWS,
    GPUNN_OP_GATHER_ROWS, GPUNN_OP_RANDOM_PERMUTATION, GPUNN_OP_SAMPLE_INDICES, GPUNN_OP_ADVANCE, GPUNN_OP_TABLE_LOAD,
    GPUNN_OP_TABLE_STORE, GPUNN_OP_METRICS_ACCUMULATE, GPUNN_OP_GATHER_NORMALIZE, GPUNN_OP_ALL_REDUCE,
    GPUNN_OP_REDUCE_SCATTER, GPUNN_OP_ALL_GATHER, GPUNN_OP_CONFUSION_ACCUMULATE, GPUNN_OP_RANDOM_SHIFT_LABELS,
    GPUNN_OP_RANDOM_AFFINE_LABELS, GPUNN_OP_RANDOM_ZOOM, GPUNN_OP_RANDOM_ZOOM_LABELS,
    // tests/training/lbfgs_test.cpp has PyTorch's steps.
    GPUNN_OP_LBFGS_UPDATE,
    // PyTorch gives FAKE_QUANTIZE; its kernels in eight bits round elsewhere.
    GPUNN_OP_QUANTIZE, GPUNN_OP_DEQUANTIZE, GPUNN_OP_QUANTIZE_FILTER, GPUNN_OP_QUANTIZED_CONV2D,
    GPUNN_OP_QUANTIZED_MAX_POOL2D, GPUNN_OP_QUANTIZED_CONCAT, GPUNN_OP_QUANTIZED_LINEAR,
    GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D};

}  // namespace

TEST_CASE("every op gives what PyTorch gives in float64") {
  std::set<int32_t> done = kOwn;
  for (const json& one : fixture("ops.json")) {
    const ops::OpInfo* info = ops::find_op(one.at("op").get<std::string>());
    REQUIRE(info != nullptr);
    INFO(one.at("op") << " " << one.at("attrs"));
    std::vector<ReferenceTensor> inputs;
    for (const json& input : one.at("inputs")) inputs.push_back(tensor_from(input));
    const std::vector<ReferenceTensor> found = run(info->id, attributes_of(info->id, one.at("attrs")), inputs);
    REQUIRE(found.size() == one.at("outputs").size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const ReferenceTensor expected = tensor_from(one.at("outputs").at(i));
      CHECK(found[i].type == expected.type);
      CHECK(distance(expected.values, found[i].values) < 1e-12);
    }
    done.insert(info->id);
  }
  for (const json& one : fixture("optimizers.json")) done.insert(ops::find_op(one.at("op").get<std::string>())->id);
  for (const ops::OpInfo* info : ops::all_ops()) {
    INFO(info->name << " has neither a fixture nor an exemption");
    CHECK(done.count(info->id) == 1);
  }
}

TEST_CASE("a hundred steps of each optimizer are PyTorch's, or its paper's") {
  for (const json& one : fixture("optimizers.json")) {
    const int32_t op = ops::find_op(one.at("op").get<std::string>())->id;
    const graph::Attributes attrs = attributes_of(op, one.at("attrs"));
    INFO(one.at("op") << " " << one.at("attrs"));
    const auto start = one.at("start").get<std::vector<double>>();
    const TensorType flat{DType::f32, {static_cast<int64_t>(start.size())}};
    std::vector<ReferenceTensor> kept{{flat, start}};  // the weights, then the states
    const ops::Signature& signature = ops::op_info(op).row->signature;
    kept.resize(1 + states_of(signature, one.at("attrs")), {flat, std::vector<double>(start.size(), 0.0)});
    for (int t = 0; t < 100; ++t) {
      ReferenceTensor gradient{flat, {}};
      for (std::size_t i = 0; i < start.size(); ++i) {
        gradient.values.push_back(std::cos(1.3 * t + 0.7 * static_cast<double>(i)) / (1 + static_cast<double>(i)));
      }
      std::vector<ReferenceTensor> inputs{kept[0], gradient, {{DType::f32, {}}, {0.05 / (1 + 0.02 * t)}}};
      auto state = kept.begin() + 1;
      for (std::size_t i = inputs.size(); i < signature.inputs.size(); ++i) {
        const std::string name(signature.inputs[i].name);
        if (name == "step") {
          inputs.push_back({{DType::i64, {}}, {static_cast<double>(t)}});
        } else if (one.contains(name)) {
          const auto values = one.at(name).get<std::vector<double>>();
          inputs.push_back({{DType::i64, {static_cast<int64_t>(values.size())}}, values});
        } else if (state != kept.end()) {
          inputs.push_back(*state++);
        }
      }
      kept = run(op, attrs, inputs);
      if ((t + 1) % 10 != 0) continue;
      const auto expected = one.at("weights").at(static_cast<std::size_t>(t / 10)).get<std::vector<double>>();
      INFO("after step " << t + 1);
      CHECK(distance(expected, kept[0].values) < 1e-9);
    }
  }
}
