// conv:3 and conv:4, Winograd in fp32: why each refuses a problem, and its launch for each pass.
#include <gpunn/ops.h>

#include <algorithm>
#include <string>
#include <utility>

#include "conv/convolution.hpp"
#include "conv/winograd/winograd.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Problem = ConvolutionProblem;

bool of_data(const Problem& problem) { return problem.pass == ConvolutionPass::backward_data; }

winograd::Convolution winograd_of(const Problem& problem) {
  const ConvolutionShape& s = problem.shape;
  winograd::Convolution made{.batch = static_cast<int>(s.batch),
                             .groups = static_cast<int>(s.groups),
                             .inputs = static_cast<int>(s.group_inputs),
                             .outputs = static_cast<int>(s.group_outputs),
                             .rows = static_cast<int>(s.rows.inputs),
                             .columns = static_cast<int>(s.columns.inputs),
                             .result_rows = static_cast<int>(s.rows.outputs),
                             .result_columns = static_cast<int>(s.columns.outputs),
                             .pad_rows = static_cast<int>(s.rows.pad),
                             .pad_columns = static_cast<int>(s.columns.pad),
                             .turned = false};
  if (!of_data(problem)) return made;
  std::swap(made.inputs, made.outputs);
  std::swap(made.rows, made.result_rows);
  std::swap(made.columns, made.result_columns);
  made.pad_rows = 2 - made.pad_rows;
  made.pad_columns = 2 - made.pad_columns;
  made.turned = true;
  return made;
}

// A tile's error is small only beside a sum over many channels. A CPU simulation in f32 (random data: uniform, normal,
// and normal behind a ReLU) against the bound of the conformance tests, (4 + 2 sqrt(terms)) u times the sum of the
// products' absolute values, gave for padding of 0 or 1 as the largest part of that bound:
//
//   channels   1      4     16     24     32     64    128    256    512
//   F(2x2)  1000   0.48   0.12   0.09   0.10   0.06   0.04   0.02   0.01
//   F(4x4)  1e31   5.2    0.89   0.86   0.55   0.50   0.19   0.16   0.10
//
// Where a window holds little but padding, its sum is small and the tile's error is not: hence a padding of at most 1;
// and of the data gradient, whose padding is 2 minus the forward's, a forward padding of exactly 1.
//
// A NaN or an infinity of x becomes NaN in all of its tiles' results, also in those whose windows don't hold it.
//
// The weight gradient is a sum over all pixels; on an H200 the largest part of its bound was for F(2x2) 0.21 at
// 36 pixels, 0.07 at 100, 0.02 at 512, and for F(3x3, 4x4) 1.4, 0.74 and 0.17. A tap that hardly any pixel meets, as in
// an image of one row, has next to no bound.
struct WinogradGate {
  int64_t least_channels;
  int64_t least_pixels;  // that the weight gradient goes over
};
constexpr WinogradGate kGateOfF2x2{16, 64};
constexpr WinogradGate kGateOfF4x4{64, 512};
constexpr int64_t kLeastExtent = 4;  // of the images, for the weight gradient

// Whether tiles of `edge` x `edge` results multiply at least twice as often as the convolution itself. Images of a
// pixel or two fill a small part of a tile, and its filters take several times the memory of the filters.
bool wastes_tiles(const Problem& problem, int64_t edge) {
  const winograd::Convolution made = winograd_of(problem);
  const int64_t rows = (made.result_rows + edge - 1) / edge, columns = (made.result_columns + edge - 1) / edge;
  constexpr int64_t kTaps = 3;
  const int64_t tile = (edge + kTaps - 1) * (edge + kTaps - 1);
  return rows * columns * tile >= 2 * made.result_rows * made.result_columns * kTaps * kTaps;
}

std::string winograd_refuses(const Problem& problem, const WinogradGate& gate, int64_t edge) {
  const ConvolutionShape& s = problem.shape;
  for (const ConvolutionAxis* axis : {&s.rows, &s.columns}) {
    if (axis->taps != 3 || axis->stride != 1 || axis->dilation != 1) return "is for 3x3 filters of stride 1";
    if (axis->pad > 1 || (of_data(problem) && axis->pad != 1)) return "is for a padding of 1";
  }
  const double largest = static_cast<double>(s.batch * s.groups) *
                         static_cast<double>(std::max(s.group_inputs, s.group_outputs)) *
                         static_cast<double>(std::max(s.rows.inputs, s.rows.outputs)) *
                         static_cast<double>(std::max(s.columns.inputs, s.columns.outputs));
  if (largest > static_cast<double>(1U << 30)) return "a tensor has more than 2^30 elements";
  constexpr int64_t kMostGridDimension = 65535;
  if (s.groups * std::max(s.group_inputs, s.group_outputs) > kMostGridDimension || s.groups > 1000) {
    return "too many channels";
  }
  if (problem.pass == ConvolutionPass::backward_filter) {
    if (problem.terms < gate.least_pixels || std::min(s.rows.outputs, s.columns.outputs) < kLeastExtent) {
      return "too few pixels for its error";
    }
    return std::min(s.group_inputs, s.group_outputs) < kGateOfF2x2.least_channels ? "too few channels" : "";
  }
  if (wastes_tiles(problem, edge)) return "its tiles hold too little of an image";
  const int64_t channels = of_data(problem) ? s.group_outputs : s.group_inputs;
  return channels < gate.least_channels ? "too few channels for its error" : "";
}

uint64_t f2x2_workspace(const Problem& problem) {
  const winograd::Convolution convolution = winograd_of(problem);
  return problem.pass == ConvolutionPass::backward_filter
             ? winograd::f2x2_wgrad_workspace_bytes(convolution, problem.multiprocessors)
             : winograd::f2x2_fprop_workspace_bytes(convolution);
}

std::string f2x2_refuses(const Problem& problem) {
  std::string reason = winograd_refuses(problem, kGateOfF2x2, 2);
  if (!reason.empty()) return reason;
  if (problem.capability < 80) return "a block needs more shared memory than this GPU has";
  return f2x2_workspace(problem) > kMostConvolutionWorkspace ? kTooMuchWorkspace : "";
}

void run_f2x2(const Problem& problem, cudaStream_t stream, const OpArgs& args) {
  const winograd::Convolution convolution = winograd_of(problem);
  const auto* first = args.in<float>(0);
  const auto* second = args.in<float>(1);
  auto* workspace = args.workspace<float>();
  if (problem.pass == ConvolutionPass::backward_filter) {
    return winograd::f2x2_wgrad(convolution, first, second, args.out<float>(0), workspace, problem.multiprocessors,
                                stream);
  }
  winograd::f2x2_fprop(convolution, first, second, problem.epilogue(args), args.out<float>(0), workspace, stream);
}

uint64_t f4x4_workspace(const Problem& problem) {
  const winograd::Convolution convolution = winograd_of(problem);
  return problem.pass == ConvolutionPass::backward_filter
             ? winograd::f4x4_wgrad_workspace_bytes(convolution, problem.multiprocessors)
             : winograd::f4x4_fprop_workspace_bytes(convolution, problem.multiprocessors);
}

std::string f4x4_refuses(const Problem& problem) {
  std::string reason = winograd_refuses(problem, kGateOfF4x4, 4);
  if (!reason.empty()) return reason;
  return f4x4_workspace(problem) > kMostConvolutionWorkspace ? kTooMuchWorkspace : "";
}

void run_f4x4(const Problem& problem, cudaStream_t stream, const OpArgs& args) {
  const winograd::Convolution convolution = winograd_of(problem);
  const auto* first = args.in<float>(0);
  const auto* second = args.in<float>(1);
  auto* workspace = args.workspace<float>();
  if (problem.pass == ConvolutionPass::backward_filter) {
    return winograd::f4x4_wgrad(convolution, first, second, args.out<float>(0), workspace, problem.multiprocessors,
                                stream);
  }
  winograd::f4x4_fprop(convolution, first, second, problem.epilogue(args), args.out<float>(0), workspace,
                       problem.multiprocessors, stream);
}

}  // namespace

std::vector<ConvolutionVariant> winograd_variants() {
  return {
      {.name = "conv:3", .refuses = f2x2_refuses, .workspace_bytes = f2x2_workspace, .run = run_f2x2},
      {.name = "conv:4", .refuses = f4x4_refuses, .workspace_bytes = f4x4_workspace, .run = run_f4x4, .trusted = false},
  };
}

}  // namespace gpunn::cuda_tiled
