// What can be measured, and how it is asked for.
#include "bench/op_request.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "catch.hpp"
#include "ops/op.hpp"

using gpunn::DType;
using gpunn::Shape;
using gpunn::bench::inputs_of;
using gpunn::bench::parse_request;
using gpunn::bench::swept;
using gpunn::ops::Case;
using Texts = std::vector<std::string>;

namespace {

// A shape that fits each op of the catalogue.
std::string shape_of(const gpunn::ops::OpInfo& info) {
  static const std::map<int32_t, std::string> known{
      {GPUNN_OP_MATMUL, "8x6x4"},
      {GPUNN_OP_MATMUL_BIAS_ACTIVATION, "8x6x4,tb=1"},
      {GPUNN_OP_BATCH_MATMUL, "3x8x6x4,ta=1"},
      {GPUNN_OP_CONV2D, "2,3,8,8,4,3,3,pad=1"},
      {GPUNN_OP_CONV2D_BACKWARD_DATA, "2,3,8,8,4,3,3,pad=1"},
      {GPUNN_OP_CONV2D_BACKWARD_FILTER, "2,3,8,8,4,3,3,pad=1"},
      {GPUNN_OP_CONV2D_BIAS_ACTIVATION, "2,3,8,8,4,3,3"},
      {GPUNN_OP_NORM, "100"},
      {GPUNN_OP_MEAN_ROWS, "10"},
      {GPUNN_OP_MEAN_ROWS_BACKWARD, "10"},
      {GPUNN_OP_SAMPLE_INDICES, "100,batch=10"},
      {GPUNN_OP_GATHER_ROWS, "100,batch=10"},
      {GPUNN_OP_GATHER_NORMALIZE, "100,3,4,4,batch=10"},
      {GPUNN_OP_ADVANCE, ""},
      {GPUNN_OP_TABLE_LOAD, "64"},
      {GPUNN_OP_TABLE_STORE, "64"},
      {GPUNN_OP_RANDOM_PERMUTATION, "100"},
  };
  if (const auto found = known.find(info.id); found != known.end()) return found->second;
  if (info.id >= GPUNN_OP_SGD_UPDATE && info.id <= GPUNN_OP_L1_GRADIENT) return "100";
  const bool matrix = (info.id >= GPUNN_OP_SOFTMAX && info.id <= GPUNN_OP_LOG_SOFTMAX_BACKWARD) ||
                      info.id == GPUNN_OP_LAYER_NORM || info.id == GPUNN_OP_LAYER_NORM_BACKWARD ||
                      (info.id >= GPUNN_OP_NLL_LOSS && info.id <= GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD) ||
                      info.id == GPUNN_OP_METRICS_ACCUMULATE;
  return matrix ? "6,5" : "2,3,8,8";
}

template <class T>
std::vector<T> numbers(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

TEST_CASE("every op of the catalogue can be measured", "[bench]") {
  for (const gpunn::ops::OpInfo* info : gpunn::ops::all_ops()) {
    INFO(info->name);
    const Case request = parse_request(std::string(info->name), shape_of(*info));
    CHECK(request.signature.op == info->id);
    CHECK_FALSE(request.signature.outputs.empty());
    for (std::size_t i = 0; i < request.signature.inputs.size(); ++i) {
      CHECK(inputs_of(request, 1)[i].size() == request.signature.inputs[i].bytes());
    }
  }
}

TEST_CASE("shapes are read in the form of their family", "[bench]") {
  const Case product = parse_request("matmul", "8x6x4,ta=1");
  CHECK(product.signature.inputs[0].shape == Shape{4, 8});
  CHECK(product.signature.inputs[1].shape == Shape{4, 6});
  CHECK(product.signature.outputs[0].shape == Shape{8, 6});
  const Case gradient = parse_request("conv2d_backward_data", "2,3,9,9,4,3,3,stride=2,pad=1");
  CHECK(gradient.signature.inputs[0].shape == Shape{2, 4, 5, 5});
  CHECK(gradient.signature.outputs[0].shape == Shape{2, 3, 9, 9});
  const Case lars = parse_request("lars_update", "1000");
  CHECK(lars.signature.inputs.back().dtype == DType::i64);
  CHECK(numbers<int64_t>(inputs_of(lars, 1)[4]) == std::vector<int64_t>{0, 1000});
}

TEST_CASE("a shape in another form says which is expected", "[bench]") {
  CHECK_THROWS_WITH(parse_request("matmul", "8x6"), Contains("expected MxNxK"));
  CHECK_THROWS_WITH(parse_request("matmul", "8x6x4,tc=1"), Contains("no option 'tc'"));
  CHECK_THROWS_WITH(parse_request("conv2d", "1,2,3"), Contains("N,C,H,W,K,R,S"));
  CHECK_THROWS_WITH(parse_request("matmull", "8x6x4"), Contains("did you mean 'MATMUL'"));
  CHECK_THROWS_WITH(parse_request("relu", "8,-1"), Contains("numbers from 0"));
  CHECK_THROWS_WITH(parse_request("lars_update", "8,8"), Contains("the number of parameters"));
}

TEST_CASE("a range is a sweep by powers of two", "[bench]") {
  CHECK(swept("matmul", "512..2048") == Texts{"512x512x512", "1024x1024x1024", "2048x2048x2048"});
  CHECK(swept("matmul", "512..1500,tb=1") == Texts{"512x512x512,tb=1", "1024x1024x1024,tb=1"});
  CHECK(swept("relu", "100..400") == Texts{"100", "200", "400"});
  CHECK(swept("relu", "100") == Texts{"100"});
  CHECK_THROWS_WITH(swept("relu", "8..4"), Contains("a range as 512..8192"));
  CHECK_THROWS_WITH(swept("relu", "0..4"), Contains("a range as 512..8192"));
  CHECK_THROWS_WITH(swept("relu", "a..4"), Contains("numbers from 0"));
}

TEST_CASE("a saved output is that of its input", "[bench]") {
  const Case request = parse_request("max_pool2d_backward", "1,1,4,4");
  const auto inputs = inputs_of(request, 1);
  const std::vector<float> x = numbers<float>(inputs[1]), y = numbers<float>(inputs[2]);
  CHECK(y[0] == std::max({x[0], x[1], x[4], x[5]}));
  CHECK(y[3] == std::max({x[10], x[11], x[14], x[15]}));
}

TEST_CASE("data are random, in range, and the same each time", "[bench]") {
  const Case request = parse_request("nll_loss", "1000,7");
  const std::vector<float> rows = numbers<float>(inputs_of(request, 1)[0]);
  CHECK(std::ranges::all_of(rows, [](float value) { return value >= -4 && value <= 0; }));
  CHECK(inputs_of(request, 1)[0] == inputs_of(request, 1)[0]);
  CHECK(inputs_of(request, 1)[0] != inputs_of(request, 2)[0]);
  const std::vector<int32_t> labels = numbers<int32_t>(inputs_of(request, 1)[1]);
  for (const int32_t label : {0, 3, 6}) CHECK(std::ranges::count(labels, label) > 50);
  CHECK(std::ranges::all_of(labels, [](int32_t label) { return label >= 0 && label < 7; }));
}
