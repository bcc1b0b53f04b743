// What a measured op is judged by: the reference on all of it, or on a part in which no term of a sum is missing.
#include "bench/reference.hpp"

#include <cmath>
#include <cstring>

#include "bench/op_request.hpp"
#include "catch.hpp"
#include "ops/reference.hpp"
#include "ops/values.hpp"

using gpunn::Precision;
using gpunn::bench::inputs_of;
using gpunn::bench::parse_request;
using gpunn::bench::Reference;
using gpunn::ops::Case;
using Bytes = Reference::Bytes;

namespace {

// What a right kernel gives.
std::vector<Bytes> outputs_of(const Case& request, const std::vector<Bytes>& inputs) {
  std::vector<gpunn::ops::ReferenceTensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(gpunn::ops::decode(request.signature.inputs[i], inputs[i]));
  }
  std::vector<Bytes> outputs;
  for (const auto& output : gpunn::ops::run_reference(request.signature, tensors)) {
    outputs.push_back(gpunn::ops::encode(output));
  }
  return outputs;
}

}  // namespace

TEST_CASE("a small op is judged as a whole", "[bench]") {
  const Case request = parse_request("matmul", "20x30x40");
  const std::vector<Bytes> inputs = inputs_of(request, 1);
  std::vector<Bytes> outputs = outputs_of(request, inputs);
  auto reference = Reference::of(request.signature, inputs);
  REQUIRE(reference);
  Reference::Deviation right = reference->judge(outputs, Precision::fp32);
  CHECK(right.checked == 600);
  CHECK(right.detail.empty());
  CHECK(right.error < 1e-7);

  // Off by 1 % of itself: far too much for fp32, and too much for BF16.
  float value = 0;
  std::memcpy(&value, outputs[0].data() + 400, sizeof(value));
  value *= 1.01F;
  std::memcpy(outputs[0].data() + 400, &value, sizeof(value));
  const Reference::Deviation wrong = reference->judge(outputs, Precision::fp32);
  CHECK(wrong.allowed > 1);
  CHECK_THAT(wrong.detail, Contains("output 0"));
  CHECK(wrong.error > 1e-5);
  value = std::nanf("");
  std::memcpy(outputs[0].data() + 400, &value, sizeof(value));
  CHECK(std::isinf(reference->judge(outputs, Precision::bf16).error));
}

TEST_CASE("a large product or convolution is judged by a part, in the same places", "[bench]") {
  const char* op = "";
  const char* shape = "";
  SECTION("product") { op = "matmul", shape = "310x290x300,ta=1"; }
  SECTION("transposed product") { op = "matmul_bias_activation", shape = "310x290x300,tb=1"; }
  SECTION("convolution") { op = "conv2d", shape = "17,16,16,16,16,5,5,pad=2"; }
  SECTION("convolution in groups") { op = "conv2d_bias_activation", shape = "33,16,16,16,32,5,5,pad=2,groups=4"; }
  SECTION("data gradient") { op = "conv2d_backward_data", shape = "17,16,16,16,16,5,5,pad=2"; }
  SECTION("weight gradient") { op = "conv2d_backward_filter", shape = "17,16,16,16,16,5,5,pad=2"; }
  CAPTURE(op);
  const Case request = parse_request(op, shape);
  const std::vector<Bytes> inputs = inputs_of(request, 1);
  auto reference = Reference::of(request.signature, inputs);
  REQUIRE(reference);
  std::vector<Bytes> outputs = outputs_of(request, inputs);
  const Reference::Deviation right = reference->judge(outputs, Precision::fp32);
  CHECK(right.detail.empty());
  CHECK(right.error < 1e-6);
  CHECK(right.checked > 16);
  CHECK(right.checked < request.signature.outputs[0].elements());
  for (std::size_t i = 3; i < outputs[0].size(); i += sizeof(float)) outputs[0][i] ^= std::byte{1};
  CHECK_FALSE(reference->judge(outputs, Precision::fp32).detail.empty());
}

TEST_CASE("rows of a large op by rows are judged, an op that can't be cut is not", "[bench]") {
  const Case relu = parse_request("relu", "50000000");
  const std::vector<Bytes> inputs = inputs_of(relu, 1);
  auto reference = Reference::of(relu.signature, inputs);
  REQUIRE(reference);
  std::vector<Bytes> outputs = {inputs[0]};  // wrong where x is negative
  CHECK_FALSE(reference->judge(outputs, Precision::fp32).detail.empty());
  const Case norm = parse_request("norm", "50000000");
  CHECK_FALSE(Reference::of(norm.signature, inputs_of(norm, 1)));
}

TEST_CASE("channels-last images of half precision are judged by the same indices") {
  const auto dtype = GENERATE(gpunn::DType::f32, gpunn::DType::bf16);
  for (const char* shape : {"2,3,5,7,4,3,3", "64,64,32,32,64,3,3,pad=1"}) {  // whole, and a part
    const Case packed = parse_request("conv2d", shape, dtype, gpunn::Layout::packed);
    const Case last = parse_request("conv2d", shape, dtype, gpunn::Layout::channels_last);
    const auto judged = [](const Case& request) {
      const auto inputs = gpunn::bench::inputs_of(request, 1);
      auto reference = gpunn::bench::Reference::of(request.signature, inputs);
      REQUIRE(reference);
      return reference->judge({std::vector<std::byte>(request.signature.outputs[0].bytes())}, gpunn::Precision::fp32);
    };
    const auto one = judged(packed), other = judged(last);
    CHECK(one.error == other.error);  // of zeros
    CHECK(one.checked == other.checked);
    CHECK_FALSE(other.detail.empty());
  }
}
