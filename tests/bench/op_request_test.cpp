// What can be measured, and how it is asked for.
#include "bench/op_request.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cstring>
#include <optional>

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

// Forms of shapes: each op of the catalogue expects at least one of them.
const Texts kForms{"",      "64",           "100,batch=10",       "6,5", "2,3,8,8", "100,3,4,4,batch=10",
                   "8x6x4", "3x8x6x4,ta=1", "2,3,8,8,4,3,3,pad=1"};

// Nothing where the op expects another form.
std::optional<Case> request_of(const gpunn::ops::OpInfo& info, const std::string& form) {
  try {
    return parse_request(std::string(info.name), form);
  } catch (const gpunn::Error&) {
    return std::nullopt;
  }
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
    std::size_t fitting = 0;
    for (const std::string& form : kForms) {
      INFO(info->name << " '" << form << "'");
      const std::optional<Case> request = request_of(*info, form);
      if (!request) continue;
      ++fitting;
      CHECK(request->signature.op == info->id);
      CHECK_FALSE(request->signature.outputs.empty());
      const auto inputs = inputs_of(*request, 1);
      REQUIRE(inputs.size() == request->signature.inputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(inputs[i].size() == request->signature.inputs[i].bytes());
    }
    INFO(info->name);
    CHECK(fitting > 0);
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
