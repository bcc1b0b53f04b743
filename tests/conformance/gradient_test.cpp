// The reference's backward ops, and the runtime's gradient functions on top of them, against finite differences.
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "conformance/gradients/function.hpp"
#include "conformance/gradients/gradient_case.hpp"
#include "ops/evaluate.hpp"
#include "ops/op.hpp"

using namespace gpunn;
using namespace gpunn::conformance;
using namespace gpunn::ops;

namespace {

// The largest difference, relative to the largest expected number.
double distance(const ReferenceTensor& expected, const ReferenceTensor& found) {
  REQUIRE(expected.values.size() == found.values.size());
  double largest = 1e-3, worst = 0;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double difference = std::abs(expected.values[i] - found.values[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  return worst / largest;
}

// A network of one op and what makes a number of it: mean over rows of (y - target)^2.
struct Network {
  graph::Graph graph;
  ops_test::ValueMap values;
  std::vector<graph::ValueId> inputs;
  graph::ValueId loss = graph::kNoValue;
};

graph::ValueId add_input(Network& network, const std::string& name, const InputSpec& spec, Random& random) {
  const graph::ValueId id = network.graph.add_value(name, spec.type, graph::Storage::parameters);
  ReferenceTensor tensor{spec.type, {}};
  for (int64_t i = 0; i < spec.type.elements(); ++i) tensor.values.push_back(spec.value(random, i));
  network.values[id] = tensor;
  return id;
}

Network make_network(int32_t op, const graph::Attributes& attrs, const std::vector<InputSpec>& specs) {
  Random random(3, ops::op_info(op).name);
  Network network;
  for (const InputSpec& spec : specs) network.inputs.push_back(add_input(network, "input", spec, random));
  graph::ValueId y = network.graph.add(op, "op", attrs, network.inputs).front();
  const Shape shape = network.graph.value(y).type.shape;
  if (shape.empty()) {
    network.loss = y;
    return network;
  }
  if (shape.size() > 1) {
    const graph::ValueId target = add_input(network, "target", f32(shape), random);
    y = network.graph.add1(GPUNN_OP_MSE_LOSS, "loss", {}, {y, target});
  }
  const graph::ValueId count = add_input(network, "count", i32({}, constant(static_cast<double>(shape[0]))), random);
  network.loss = network.graph.add1(GPUNN_OP_MEAN_ROWS, "mean", {}, {y, count});
  return network;
}

// Losses whose second input is what x should be; nothing flows back to it.
bool has_target(int32_t op) {
  return op == GPUNN_OP_MSE_LOSS || op == GPUNN_OP_SOFT_CROSS_ENTROPY || op == GPUNN_OP_BCE_LOGITS_LOSS ||
         op == GPUNN_OP_HUBER_LOSS || op == GPUNN_OP_GIOU_LOSS;
}

void check_network(int32_t op, const graph::Attributes& attrs, const std::vector<InputSpec>& specs) {
  Network network = make_network(op, attrs, specs);
  std::vector<graph::ValueId> targets;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const bool target_of_loss = has_target(op) && i == 1;
    // What is changed in place, as running statistics are, has no gradient.
    const bool changed = std::ranges::count(ops::op_info(op).in_place, static_cast<int>(i)) != 0;
    const bool given = (op == GPUNN_OP_BATCH_NORM_INFERENCE && i >= 3) ||  // statistics
                       (op == GPUNN_OP_SELECT && i == 0) ||                // the condition
                       (op == GPUNN_OP_CROSS_ENTROPY && i == 2);           // the weights of the classes
    if (specs[i].type.dtype == DType::f32 && !target_of_loss && !changed && !given)
      targets.push_back(network.inputs[i]);
  }
  const graph::Graph forward = network.graph;
  const std::vector<graph::ValueId> gradients = compiler::add_gradients(network.graph, network.loss, targets);
  ops_test::ValueMap values = network.values;
  ops_test::evaluate(network.graph, values);

  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Function loss = [&](const std::vector<ReferenceTensor>& x) {
      ops_test::ValueMap moved = network.values;
      moved[targets[i]] = x[0];
      ops_test::evaluate(forward, moved);
      return std::vector<ReferenceTensor>{moved.at(network.loss)};
    };
    const ReferenceTensor one{{DType::f32, {}}, {1.0}};
    const ReferenceTensor expected = finite_difference(loss, {network.values.at(targets[i])}, 0, 0, one);
    INFO(ops::op_info(op).name << ", target " << i);
    REQUIRE(gradients[i] != graph::kNoValue);
    CHECK(distance(expected, ops_test::tensor_at(network.graph, values, gradients[i])) < 1e-7);
  }
}

}  // namespace

TEST_CASE("the reference's backward ops are the gradients of its forward ops") {
  for (const GradientCase& test : all_gradients()) {
    Random random(5, test.name);
    const GradientProblem problem = make_problem(test, random);
    const std::vector<ReferenceTensor> found = run_reference(problem.signature, problem.inputs);
    REQUIRE(found.size() == problem.expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO(ops::op_info(test.op).name << " " << test.name << ", output " << i);
      // Saved outputs were rounded to f32 on their way.
      CHECK(distance(problem.expected[i], found[i]) < 1e-6);
    }
  }
}

TEST_CASE("the runtime's gradient functions give the gradients of the reference's forward ops") {
  std::set<int32_t> done;
  const auto check = [&done](int32_t op, const graph::Attributes& attrs, const std::vector<InputSpec>& inputs) {
    check_network(op, attrs, inputs);
    done.insert(op);
  };
  for (const ops::OpInfo* info : ops::all_ops()) {
    if (info->differentiable == nullptr) continue;
    for (const CaseSpec& spec : info->differentiable()) check(info->id, spec.attrs, spec.inputs);
  }
  for (const int32_t ta : {0, 1}) {
    for (const int32_t tb : {0, 1}) {
      const gpunn_matmul_attrs attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb};
      check(GPUNN_OP_MATMUL, graph::Attributes::of(attrs),
            {f32(ta != 0 ? Shape{5, 3} : Shape{3, 5}), f32(tb != 0 ? Shape{4, 5} : Shape{5, 4})});
      check(GPUNN_OP_BATCH_MATMUL, graph::Attributes::of(attrs),
            {f32(ta != 0 ? Shape{2, 5, 3} : Shape{2, 3, 5}), f32(tb != 0 ? Shape{2, 4, 5} : Shape{2, 5, 4})});
    }
  }
  gpunn_conv2d_attrs conv{};
  conv.groups = 2;
  conv.stride[0] = 2, conv.stride[1] = 1;
  conv.pad[0] = 1, conv.pad[1] = 2;
  conv.dilation[0] = 1, conv.dilation[1] = 2;
  check(GPUNN_OP_CONV2D, graph::Attributes::of(conv), {f32({2, 4, 6, 5}), f32({6, 2, 3, 2})});
  conv.input_size[0] = 6, conv.input_size[1] = 5;
  conv.filter_size[0] = 3, conv.filter_size[1] = 2;
  check(GPUNN_OP_CONV2D_BACKWARD_DATA, graph::Attributes::of(conv), {f32({2, 6, 3, 7}), f32({6, 2, 3, 2})});
  check(GPUNN_OP_CONV2D_BACKWARD_FILTER, graph::Attributes::of(conv), {f32({2, 6, 3, 7}), f32({2, 4, 6, 5})});
  const gpunn_pool2d_attrs pool{
      .struct_size = 0, .window = {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .count_padding = 0, .input_size = {0, 0}};
  check(GPUNN_OP_MAX_POOL2D, graph::Attributes::of(pool), {f32({2, 2, 5, 4}, apart(0.02))});
  for (const int32_t counted : {0, 1}) {
    gpunn_pool2d_attrs average = pool;
    average.count_padding = counted;
    check(GPUNN_OP_AVG_POOL2D, graph::Attributes::of(average), {f32({2, 2, 5, 4})});
  }
  for (const int32_t mode : {GPUNN_UPSAMPLE_NEAREST, GPUNN_UPSAMPLE_BILINEAR}) {
    const gpunn_upsample2d_attrs upsample{.struct_size = 0, .factor = {2, 3}, .mode = mode};
    check(GPUNN_OP_UPSAMPLE2D, graph::Attributes::of(upsample), {f32({2, 2, 3, 4})});
  }
  const gpunn_reflect_pad2d_attrs reflect{.struct_size = 0, .before = {1, 2}, .after = {0, 2}};
  check(GPUNN_OP_REFLECT_PAD2D, graph::Attributes::of(reflect), {f32({2, 2, 3, 4})});
  gpunn_pad_attrs pad{};
  pad.rank = 3;
  pad.before[1] = 2, pad.after[1] = 1, pad.after[2] = 3;
  check(GPUNN_OP_PAD, graph::Attributes::of(pad), {f32({2, 3, 4})});
  gpunn_slice_attrs slice{};
  slice.rank = 3;
  slice.start[1] = 1;
  slice.size[0] = 2, slice.size[1] = 3, slice.size[2] = 4;
  check(GPUNN_OP_SLICE, graph::Attributes::of(slice), {f32({2, 6, 5})});
  gpunn_transpose_attrs transpose{};
  transpose.rank = 3;
  transpose.permutation[0] = 1, transpose.permutation[1] = 2;
  check(GPUNN_OP_TRANSPOSE, graph::Attributes::of(transpose), {f32({2, 3, 4})});
  check(GPUNN_OP_CONCAT, graph::Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 1}),
        {f32({3, 2, 2}), f32({3, 4, 2}), f32({3, 1, 2})});
  gpunn_dropout_attrs dropout{};
  dropout.p = 0.3F;
  check(GPUNN_OP_DROPOUT, graph::Attributes::of(dropout), {f32({5, 7}), i64({}, constant(4))});
  check(GPUNN_OP_SCALE, graph::Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = -2.5F}), {f32({3, 4})});
  const std::vector<std::pair<Shape, Shape>> broadcast = {
      {{3, 4}, {3, 4}}, {{3, 4}, {4}}, {{3, 1}, {2, 1, 4}}, {{}, {5}}};
  for (const auto& [a, b] : broadcast) {
    for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SUB, GPUNN_OP_MUL}) check(op, {}, {f32(a), f32(b)});
    for (const int32_t op : {GPUNN_OP_DIV, GPUNN_OP_POW}) {
      check(op, {}, {f32(a, uniform(0.5, 2)), f32(b, uniform(0.5, 2))});
    }
    // Never closer to each other than the differences reach.
    for (const int32_t op : {GPUNN_OP_MAXIMUM, GPUNN_OP_MINIMUM})
      check(op, {}, {f32(a, apart(0.02)), f32(b, constant(0))});
    check(GPUNN_OP_SELECT, {}, {f32({4}, integers(0, 1)), f32({3, 4}), f32({1, 3, 1})});
  }
  gpunn_expand_attrs expand{};
  expand.rank = 3;
  expand.dim[0] = 2, expand.dim[1] = 3, expand.dim[2] = 4;
  for (const Shape& x : {Shape{2, 3, 4}, Shape{3, 1}, Shape{}, Shape{2, 1, 1}}) {
    check(GPUNN_OP_EXPAND, graph::Attributes::of(expand), {f32(x)});
  }
  for (const int32_t op : {GPUNN_OP_EXP, GPUNN_OP_ERF}) check(op, {}, {f32({5, 7})});
  for (const int32_t op : {GPUNN_OP_LOG, GPUNN_OP_SQRT, GPUNN_OP_RSQRT}) check(op, {}, {f32({5, 7}, uniform(0.5, 2))});
  for (const int32_t kind : {GPUNN_REDUCE_SUM, GPUNN_REDUCE_MEAN, GPUNN_REDUCE_MAX}) {
    for (const int32_t keep : {0, 1}) {
      const gpunn_reduce_attrs reduce{.struct_size = 0, .kind = kind, .axes = 0b101, .keep_dims = keep};
      check(GPUNN_OP_REDUCE, graph::Attributes::of(reduce), {f32({2, 3, 4}, apart(0.02))});
    }
  }
  check(GPUNN_OP_GATHER_ROWS, {}, {f32({4, 3}), i32({6}, listed({3, 0, -1, 3, 1, 3}))});
  check(GPUNN_OP_SCATTER_ADD, graph::Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = 4}),
        {f32({6, 3}), i32({6}, listed({3, 0, -1, 3, 1, 3}))});
  check(GPUNN_OP_AXPBY, graph::Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = 1.5F, .beta = -0.25F}),
        {f32({3, 4}), f32({3, 4})});
  check(GPUNN_OP_CLAMP, graph::Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = -20, .high = 30}),
        {f32({5, 7}, apart(0.02))});
  check(GPUNN_OP_COPY, {}, {f32({3, 4})});
  check(GPUNN_OP_BIAS_ADD, {}, {f32({2, 3, 4, 2}), f32({3})});
  const auto norm = graph::Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = 0.01F, .momentum = 0.1F});
  std::vector<InputSpec> batch{f32({5, 3, 2, 2}, uniform(-1, 3)), f32({3}), f32({3}), f32({3}), f32({3})};
  batch.push_back(i32({}, constant(5)));
  check(GPUNN_OP_BATCH_NORM, norm, batch);
  check(GPUNN_OP_BATCH_NORM_INFERENCE, norm,
        {f32({5, 3, 2, 2}), f32({3}), f32({3}), f32({3}), f32({3}, uniform(0.3, 2))});
  check(GPUNN_OP_MEAN_ROWS, {}, {f32({9}), i32({}, constant(6))});

  for (const ops::OpInfo* info : ops::all_ops()) {
    if (info->gradient == nullptr) continue;
    INFO(info->name << " has a gradient that nothing here differentiates");
    CHECK(done.count(info->id) == 1);
  }
}

TEST_CASE("names of gradient cases are unique within an op, so that a failure names its case") {
  std::set<std::pair<int32_t, std::string>> seen;
  for (const GradientCase& test : all_gradients()) {
    INFO(test.name);
    CHECK(seen.insert({test.op, test.name}).second);
  }
}
