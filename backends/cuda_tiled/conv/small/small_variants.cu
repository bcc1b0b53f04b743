// The variants of small_convolution.hpp: why each refuses a problem, and its launch for each pass.
#include <string>

#include "conv/convolution.hpp"
#include "conv/small/small_convolution.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Problem = ConvolutionProblem;

template <int kTile>
std::optional<small::Plan> plan_of(const Problem& problem) {
  return small::plan_of(problem.pass, problem.shape, small::kTiles[kTile], problem.multiprocessors);
}

template <int kTile>
std::string refuses(const Problem& problem) {
  if (problem.precision == GPUNN_PRECISION_FP32) return "is for TF32";
  if (problem.capability != 90) return "is for GPUs of compute capability 9.0";
  return plan_of<kTile>(problem).has_value() ? "" : "takes no groups, and channels by fours";
}

template <int kTile>
void run(const Problem& problem, cudaStream_t stream, const OpArgs& args) {
  small::run(plan_of<kTile>(problem).value(), kTile,
             {.first = args.in<float>(0),
              .second = args.in<float>(1),
              .bias = problem.bias ? args.in<float>(2) : nullptr,
              .out = args.out<float>(0),
              .relu = problem.relu},
             stream);
}

template <int kTile>
constexpr ConvolutionVariant variant(const char* name) {
  return {.name = name, .refuses = refuses<kTile>, .run = run<kTile>};
}

}  // namespace

std::vector<ConvolutionVariant> small_convolution_variants() {
  return {variant<0>("conv:tf32:5"), variant<1>("conv:tf32:6"), variant<2>("conv:tf32:7"), variant<3>("conv:tf32:8")};
}

}  // namespace gpunn::cuda_tiled
