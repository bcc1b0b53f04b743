// Every op has a reference, cases and tolerances; and the tolerances tell right from wrong.
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "catch.hpp"
#include "ops/case.hpp"
#include "ops/comparison.hpp"
#include "ops/near.hpp"
#include "ops/op.hpp"
#include "ops/tolerance.hpp"

using namespace gpunn;
using namespace gpunn::ops;
using ops_test::near;

namespace {

ReferenceTensor covered_tensor(DType dtype, Shape shape, std::vector<double> values) {
  TensorType type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return {std::move(type), std::move(values)};
}

// Sums of products in plain f32, in order, as the plainest kernel makes them; `skipped`: a term to leave out, or -1.
ReferenceTensor plain_matmul(const std::vector<ReferenceTensor>& in, int64_t skipped) {
  const int64_t m = in[0].type.shape[0], k = in[0].type.shape[1], n = in[1].type.shape[1];
  ReferenceTensor y = covered_tensor(DType::f32, {m, n}, {});
  for (int64_t i = 0; i < m * n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      if (j == skipped) continue;
      const auto a = static_cast<float>(in[0].values[static_cast<std::size_t>(i / n * k + j)]);
      const auto b = static_cast<float>(in[1].values[static_cast<std::size_t>(j * n + i % n)]);
      sum += a * b;
    }
    y.values.push_back(sum);
  }
  return y;
}

}  // namespace

TEST_CASE("every op has a reference, cases, a typical case, tolerances and a way to ask for it") {
  std::map<int32_t, int> cases;
  for (const Case& test : all_cases()) ++cases[test.signature.op];
  std::set<int32_t> judged;
  for (const Case& test : all_cases()) {
    if (!judged.insert(test.signature.op).second) continue;
    Random random(1, test.name);
    const std::vector<ReferenceTensor> inputs = test.inputs(random);
    const std::vector<ReferenceTensor> reference = run_reference(test.signature, inputs);
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const Tolerance tolerance = tolerance_of({test.signature, inputs, reference}, i);
      CHECK(tolerance.bound.size() == reference[i].values.size());
      CHECK_FALSE(tolerance.reason.empty());
      // Factors that may be rounded allow as much or more; of ops without inputs too.
      const std::vector<double> rounded =
          tolerance_of({test.signature, inputs, reference, {}, Precision::bf16}, i).bound;
      INFO(test.name);
      CHECK(std::ranges::equal(rounded, tolerance.bound, [](double a, double b) { return a >= b || b != b; }));
    }
  }
  for (const auto& [id, op] : ops::all()) {
    INFO(op.name);
    CHECK(cases[id] >= 5);
    CHECK(judged.count(id) == 1);
    CHECK(op_info(id).request != nullptr);
    CHECK_NOTHROW(make_case(id, op_info(id).typical));
  }
}

TEST_CASE("case names are unique within an op, so that a failure names its case") {
  std::set<std::pair<int32_t, std::string>> seen;
  for (const Case& test : all_cases()) {
    INFO(test.name);
    CHECK(seen.insert({test.signature.op, test.name}).second);
  }
}

TEST_CASE("the reference writes every element of every case") {
  for (const Case& test : all_cases()) {
    int64_t elements = 0;
    for (const TensorType& type : test.signature.inputs) elements += type.elements();
    if (elements > 5000 || test.name.find("NaN") != std::string::npos) continue;
    Random random(1, test.name);
    for (const ReferenceTensor& output : run_reference(test.signature, test.inputs(random))) {
      std::size_t unwritten = 0;
      for (const double value : output.values) unwritten += std::isnan(value) ? 1 : 0;
      INFO(ops::op_info(test.signature.op).name << " " << test.name);
      CHECK(unwritten == 0);
    }
  }
}

TEST_CASE("plain f32 sums pass and sums without one term fail, at any depth and of any sign") {
  for (const int64_t depth : {1, 17, 513, 5003}) {
    for (const double low : {-1.0, 0.0}) {
      Random random(9, "depth " + std::to_string(depth));
      std::vector<ReferenceTensor> in{covered_tensor(DType::f32, {11, depth}, {}),
                                      covered_tensor(DType::f32, {depth, 13}, {})};
      for (ReferenceTensor& tensor : in) {
        for (int64_t i = 0; i < tensor.type.elements(); ++i) {
          tensor.values.push_back(rounded(random.uniform(low, 1), DType::f32));
        }
      }
      const auto attrs =
          graph::Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 0});
      const graph::OpSignature signature{
          GPUNN_OP_MATMUL, attrs, {in[0].type, in[1].type}, {TensorType{DType::f32, {11, 13}}}};
      const std::vector<ReferenceTensor> reference = run_reference(signature, in);
      const Tolerance tolerance = tolerance_of({signature, in, reference}, 0);
      INFO("depth " << depth << ", from " << low);
      const Comparison right = compare(reference[0], plain_matmul(in, -1), tolerance, "y");
      CHECK(right.ok());
      CHECK(right.error > 0);
      const Comparison wrong = compare(reference[0], plain_matmul(in, depth - 1), tolerance, "y");
      CHECK_FALSE(wrong.ok());
      CHECK(wrong.error > 50);
    }
  }
}

TEST_CASE("an element of a convolution may have the roundings of its neighbours, and of nothing else") {
  // A gradient of one pixel, and an image that is 0 around it: the products of most taps are 0.
  std::vector<ReferenceTensor> in{covered_tensor(DType::f32, {1, 1, 12, 12}, std::vector<double>(144, 0)),
                                  covered_tensor(DType::f32, {1, 2, 12, 12}, std::vector<double>(288, 0))};
  in[0].values[0] = 1;    // row 0, column 0
  in[1].values[13] = 1;   // of channel 0: row 1, column 1
  in[1].values[287] = 1;  // of channel 1: the far corner
  gpunn_conv2d_attrs attrs{};
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.stride[i] = attrs.dilation[i] = attrs.pad[i] = 1;
    attrs.input_size[i] = 12;
    attrs.filter_size[i] = 3;
  }
  attrs.groups = 1;
  const graph::OpSignature signature{GPUNN_OP_CONV2D_BACKWARD_FILTER,
                                     graph::Attributes::of(attrs),
                                     {in[0].type, in[1].type},
                                     {TensorType{DType::f32, {1, 2, 3, 3}}}};
  const std::vector<ReferenceTensor> reference = run_reference(signature, in);
  CHECK(reference[0].values[8] == 1);
  CHECK(reference[0].values[0] == 0);
  const Tolerance tolerance = tolerance_of({signature, in, reference}, 0);
  CHECK(tolerance.bound[0] > 0);
  CHECK(tolerance.bound[0] < 1e-5);
  CHECK(tolerance.bound[9] == 0);  // a tile does not reach the far corner

  // The last pixel has no product at all with the first tap.
  in[0].values.assign(144, 0);
  in[0].values[130] = 1;  // row 10, column 10
  in[1].values[13] = 0;
  in[1].values[143] = 1;  // row 11, column 11
  const std::vector<ReferenceTensor> at_border = run_reference(signature, in);
  CHECK(at_border[0].values[8] == 1);
  CHECK(tolerance_of({signature, in, at_border}, 0).bound[0] > 0);
}

TEST_CASE("a comparison says where, what and why") {
  const ReferenceTensor reference = covered_tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  ReferenceTensor found = reference;
  const Tolerance tolerance{std::vector<double>(6, 0.5), "a reason"};
  found.values[4] = 5.4;
  CHECK(compare(reference, found, tolerance, "y").ok());
  CHECK(near(compare(reference, found, tolerance, "y").error, 0.8));
  found.values[4] = 7;
  found.values[0] = 1.6;
  const Comparison comparison = compare(reference, found, tolerance, "y");
  CHECK(near(comparison.error, 4));
  CHECK(comparison.detail == "y[1, 1]: expected 5, found 7, tolerance 0.5 (a reason); 2 of 6 elements are off");

  const double nan = std::nan("");
  found = reference;
  found.values[2] = nan;
  CHECK_FALSE(compare(reference, found, tolerance, "y").ok());
  CHECK_FALSE(compare(found, reference, tolerance, "y").ok());
  CHECK(compare(found, found, tolerance, "y").ok());
  found.values[2] = INFINITY;
  CHECK_FALSE(compare(reference, found, tolerance, "y").ok());
  // What f32 can't hold is infinite there.
  ReferenceTensor huge = reference;
  huge.values[2] = 1e39;
  CHECK(compare(huge, found, tolerance, "y").ok());
}

TEST_CASE("values survive the way to memory and back") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8}) {
    const ReferenceTensor tensor = covered_tensor(type, {4}, {0, 1, 17, 250});
    CHECK(decode(tensor.type, encode(tensor)).values == tensor.values);
    CHECK(encode(tensor).size() == tensor.type.bytes());
  }
  CHECK(decode({DType::bf16, {1}}, encode(covered_tensor(DType::bf16, {1}, {1.01}))).values[0] == 1.0078125);
}
