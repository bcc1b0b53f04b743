// Which variants of the convolution ladder serve which shape on which GPU. Needs no GPU: a variant knows the one that
// it is asked about from the problem.
#include <gpunn/ops.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "conv/convolution.hpp"
#include "conv/shares.hpp"
#include "conv/tile_choice.hpp"
#include "conv/wgmma/wgmma_convolution.hpp"
#include "convolution_shapes.hpp"

namespace {

using gpunn::backends::ConvolutionShape;
using gpunn::cuda_tiled::ConvolutionPass;
using gpunn::cuda_tiled::ConvolutionProblem;
using gpunn::cuda_tiled::ConvolutionVariant;
namespace conv = gpunn::cuda_tiled::conv;
namespace tensor = gpunn::cuda_tiled::tensor;

using Names = std::vector<std::string>;

constexpr auto kForward = ConvolutionPass::forward;
constexpr auto kData = ConvolutionPass::backward_data;
constexpr auto kFilter = ConvolutionPass::backward_filter;
constexpr int kHopper = 90;
constexpr int kMultiprocessors = 132;

std::vector<ConvolutionVariant> all_variants() {
  std::vector<ConvolutionVariant> all = gpunn::cuda_tiled::tensor_convolution_variants();
  for (const ConvolutionVariant& variant : gpunn::cuda_tiled::direct_convolution_variants()) all.push_back(variant);
  for (const ConvolutionVariant& variant : gpunn::cuda_tiled::fp32_convolution_variants()) all.push_back(variant);
  return all;
}

ConvolutionProblem problem_of(const ConvolutionShape& shape, ConvolutionPass pass, int capability = kHopper,
                              int32_t precision = GPUNN_PRECISION_FP32) {
  return {.pass = pass,
          .shape = shape,
          .bias = false,
          .relu = false,
          .precision = precision,
          .capability = capability,
          .multiprocessors = kMultiprocessors,
          .terms = gpunn::backends::terms_of(pass, shape)};
}

Names serving(const ConvolutionProblem& problem) {
  Names names;
  for (const ConvolutionVariant& variant : all_variants()) {
    if (variant.refuses(problem).empty()) names.emplace_back(variant.name);
  }
  return names;
}

// Of square images and filters at stride and dilation 1.
ConvolutionShape plain(int64_t batch, int64_t channels, int64_t size, int64_t filters, int64_t taps, int64_t pad) {
  return shape_of({batch, channels, size, size}, filters, {taps, taps}, {1, 1}, {pad, pad}, {1, 1}, 1);
}

}  // namespace

TEST_CASE("Winograd's variants serve 3x3 at stride 1 of as many channels as their errors allow") {
  const Names both = {"conv:3", "conv:4", "conv:2", "conv:1"}, small = {"conv:3", "conv:2", "conv:1"};
  const Names none = {"conv:2", "conv:1"};
  for (const ConvolutionPass pass : {kForward, kData, kFilter}) {
    INFO(static_cast<int>(pass));
    CHECK(serving(problem_of(plain(128, 64, 32, 64, 3, 1), pass)) == both);
    CHECK(serving(problem_of(plain(128, 64, 32, 64, 5, 2), pass)) == none);
    CHECK(serving(problem_of(plain(128, 64, 32, 64, 3, 2), pass)) == none);
    CHECK(serving(problem_of(shape_of({128, 64, 32, 32}, 64, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1), pass)) == none);
    CHECK(serving(problem_of(shape_of({128, 64, 32, 32}, 64, {3, 3}, {1, 1}, {1, 1}, {2, 2}, 1), pass)) == none);
  }
  // By the channels that a sum goes over.
  CHECK(serving(problem_of(plain(8, 63, 32, 128, 3, 1), kForward)) == small);
  CHECK(serving(problem_of(plain(8, 128, 32, 63, 3, 1), kForward)) == both);
  CHECK(serving(problem_of(plain(8, 63, 32, 128, 3, 1), kData)) == both);
  CHECK(serving(problem_of(plain(8, 128, 32, 63, 3, 1), kData)) == small);
  CHECK(serving(problem_of(plain(8, 15, 32, 128, 3, 1), kForward)).back() == "conv:1");
  CHECK(std::ranges::count(serving(problem_of(plain(8, 15, 32, 128, 3, 1), kForward)), "conv:3") == 0);
  CHECK(std::ranges::count(serving(problem_of(plain(8, 16, 32, 128, 3, 1), kForward)), "conv:3") == 1);
  // Without padding the data gradient has one of 2.
  CHECK(serving(problem_of(plain(8, 64, 32, 64, 3, 0), kForward)) == both);
  CHECK(serving(problem_of(plain(8, 64, 32, 64, 3, 0), kData)) == none);
  // The weight gradient by the pixels that it goes over.
  CHECK(serving(problem_of(plain(1, 64, 7, 64, 3, 1), kFilter)) == none);
  CHECK(serving(problem_of(plain(1, 64, 8, 64, 3, 1), kFilter)) == small);
  CHECK(serving(problem_of(plain(7, 64, 8, 64, 3, 1), kFilter)) == small);
  CHECK(serving(problem_of(plain(8, 64, 8, 64, 3, 1), kFilter)) == both);
  // Images that fill a small part of a tile have fewer products without it.
  for (const ConvolutionPass pass : {kForward, kData}) {
    CHECK(serving(problem_of(plain(128, 64, 2, 64, 3, 1), pass)) == both);
    CHECK(serving(problem_of(plain(128, 64, 1, 64, 3, 1), pass)) == small);
  }
  // A block of conv:3 has more shared memory than sm_75 has.
  CHECK(serving(problem_of(plain(128, 64, 32, 64, 3, 1), kForward, 75)) == Names{"conv:4", "conv:2", "conv:1"});
}

TEST_CASE("direct variants serve few channels on one side at stride and dilation 1") {
  const auto direct = [](const ConvolutionProblem& problem) {
    Names names = serving(problem);
    std::erase_if(names, [](const std::string& name) { return name.rfind("direct", 0) != 0; });
    return names;
  };
  const Names first = {"direct:1"}, both = {"direct:2", "direct:1"};
  CHECK(direct(problem_of(plain(512, 6, 12, 16, 5, 0), kForward)) == first);
  CHECK(direct(problem_of(plain(512, 6, 12, 16, 5, 0), kData)) == both);
  CHECK(direct(problem_of(plain(512, 6, 12, 16, 5, 0), kFilter)) == both);
  CHECK(direct(problem_of(plain(128, 3, 32, 64, 3, 1), kForward)) == first);
  CHECK(direct(problem_of(plain(128, 3, 32, 65, 3, 1), kForward)).empty());
  CHECK(direct(problem_of(plain(128, 17, 32, 17, 3, 1), kForward)).empty());
  CHECK(direct(problem_of(shape_of({8, 6, 14, 14}, 16, {5, 5}, {2, 1}, {0, 0}, {1, 1}, 1), kForward)).empty());
  CHECK(direct(problem_of(shape_of({8, 6, 14, 14}, 16, {3, 3}, {1, 1}, {0, 0}, {2, 1}, 1), kForward)).empty());
  CHECK(direct(problem_of(plain(8, 6, 14, 16, 5, 5), kForward)).empty());  // an output of nothing but padding
}

TEST_CASE("convolutions in TF32 are for compute capability 9.0, and only where TF32 or BF16 is allowed") {
  const auto tf32 = [](const ConvolutionProblem& problem) {
    Names names = serving(problem);
    std::erase_if(names, [](const std::string& name) { return name.find("tf32") == std::string::npos; });
    return names;
  };
  const ConvolutionShape shape = plain(32, 64, 14, 64, 3, 1);
  for (const ConvolutionPass pass : {kForward, kData, kFilter}) {
    CHECK(tf32(problem_of(shape, pass)).empty());
    for (const int capability : {75, 80, 89, 100, 120}) {
      CHECK(tf32(problem_of(shape, pass, capability, GPUNN_PRECISION_TF32)).empty());
    }
    CHECK_FALSE(tf32(problem_of(shape, pass, kHopper, GPUNN_PRECISION_TF32)).empty());
    CHECK(tf32(problem_of(shape, pass, kHopper, GPUNN_PRECISION_TF32)) ==
          tf32(problem_of(shape, pass, kHopper, GPUNN_PRECISION_BF16)));
  }
}

TEST_CASE("every shape is served, and no variant takes more than a GiB of workspace") {
  const std::vector<ConvolutionShape> shapes = {
      plain(1, 1, 1, 1, 1, 0),
      plain(4096, 64, 56, 64, 3, 1),
      plain(1, 2048, 7, 2048, 3, 1),
      plain(65536, 16, 8, 16, 3, 1),
      plain(8, 16, 512, 16, 5, 2),
      shape_of({256, 3, 224, 224}, 64, {7, 7}, {2, 2}, {3, 3}, {1, 1}, 1),
      shape_of({64, 512, 14, 14}, 512, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 255),
      shape_of({3, 34, 9, 11}, 38, {2, 3}, {3, 2}, {1, 2}, {2, 1}, 2),
  };
  for (const ConvolutionShape& shape : shapes) {
    for (const ConvolutionPass pass : {kForward, kData, kFilter}) {
      for (const int32_t precision : {GPUNN_PRECISION_FP32, GPUNN_PRECISION_TF32}) {
        const ConvolutionProblem problem = problem_of(shape, pass, kHopper, precision);
        INFO(gpunn::backends::text_of(shape) << ", pass " << static_cast<int>(pass));
        CHECK(std::ranges::count(serving(problem), "conv:2") == 1);
        for (const ConvolutionVariant& variant : all_variants()) {
          INFO(variant.name);
          if (variant.refuses(problem).empty()) CHECK(variant.workspace_of(problem) <= uint64_t{1} << 30);
        }
      }
    }
  }
}

TEST_CASE("what kernels can't count in 32 bits, or a grid has no blocks for, is refused by all variants") {
  for (const int32_t precision : {GPUNN_PRECISION_FP32, GPUNN_PRECISION_TF32}) {
    for (const ConvolutionPass pass : {kForward, kData, kFilter}) {
      CHECK(serving(problem_of(plain(1 << 16, 128, 64, 128, 3, 1), pass, kHopper, precision)).empty());
      CHECK(serving(problem_of(plain(1, 64, 5000, 64, 3, 1), pass, kHopper, precision)).empty());
    }
  }
  const ConvolutionShape wide = plain(2, 4, 1, int64_t{65536} * 32, 1, 0);
  for (int tile = 0; tile < static_cast<int>(tensor::kWgradTiles.size()); ++tile) {
    CHECK_FALSE(tensor::wgrad_plan(wide, tile, kMultiprocessors).has_value());
  }
}

TEST_CASE("im2col is there to be compared with, and only run by its name") {
  for (const ConvolutionVariant& variant : all_variants()) {
    INFO(variant.name);
    CHECK(variant.candidate == (std::string(variant.name) != "conv:1"));
  }
}

TEST_CASE("shares cover all steps, each with some of them") {
  for (const int steps : {1, 2, 3, 7, 64, 1000, 4097}) {
    for (const int64_t blocks : {1, 5, 131, 132, 133, 10000}) {
      for (const int most : {1, 2, 16, 128}) {
        const conv::Shares shares = conv::shares_of(blocks, steps, 264, 6, most);
        INFO(steps << " steps of " << blocks << " blocks in " << shares.count << " shares of " << shares.steps);
        CHECK(shares.count >= 1);
        CHECK(shares.count <= most);
        CHECK(int64_t{shares.count} * shares.steps >= steps);
        CHECK(int64_t{shares.count - 1} * shares.steps < steps);
      }
    }
  }
}

TEST_CASE("a tile's shares cover the depth in whole units, each with some of it") {
  for (const int64_t depth : {1, 15, 16, 17, 576, 100000}) {
    for (const int64_t rows : {1, 64, 65, 512}) {
      const conv::TileChoice tile = conv::choose_tile({rows, 1000, depth, 3}, kMultiprocessors, 16, 128);
      INFO(rows << " rows, depth " << depth);
      CHECK(tile.depth_of_share % 16 == 0);
      CHECK(int64_t{tile.shares} * tile.depth_of_share >= depth);
      CHECK(int64_t{tile.shares - 1} * tile.depth_of_share < depth);
    }
  }
}
