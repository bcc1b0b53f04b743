#include "conv/half/half_convolution.hpp"

#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "architecture.hpp"
#include "conv/convolution.hpp"
#include "conv/half/half_patch.hpp"
#include "conv/half/half_unfold.hpp"
#include "conv/narrow/narrow.hpp"
#include "conv/stem/stem.hpp"
#include "cuda_common/divide_up.hpp"
#include "half/half_variants.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionAxis;

constexpr int64_t kMostRows = int64_t{1} << 30;
constexpr int64_t kFewChannels = 16;  // below, blocks of K with 64 channels of a tap would be mostly empty

HalfConvolution problem_of(const OpDesc& desc, ConvolutionPass pass, const ConvolutionShape& shape) {
  const int32_t dtype = desc.input(0).dtype;
  require(ops::is_half(dtype), "is for tensors of bf16 and f16");
  for (const gpunn_tensor* tensor : {&desc.input(0), &desc.input(1), &desc.output(0)}) {
    require(plugin::is_channels_last(*tensor), "is for channels-last images and filters");
  }
  require(!has_few_channels(shape), "of few channels: the direct kernels are faster");
  return {.pass = pass, .shape = shape, .dtype = dtype, .terms = terms_of(pass, shape)};
}

HalfConvolution bias_activation_problem_of_half(const OpDesc& desc) {
  const ConvolutionBiasActivation op = convolution_bias_activation_of(desc);
  HalfConvolution problem = problem_of(desc, ConvolutionPass::forward, op.shape);
  problem.bias = true;
  problem.relu = op.relu;
  return problem;
}
HalfConvolution bias_add_activation_problem(const OpDesc& desc) {
  HalfConvolution problem = bias_activation_problem_of_half(desc);
  require(plugin::is_channels_last(desc.input(3)), "is for channels-last images and filters");
  problem.residual = true;
  return problem;
}
HalfConvolution backward_filter_problem(const OpDesc& desc) {
  return problem_of(desc, ConvolutionPass::backward_filter, convolution_backward_filter_of(desc));
}

// One axis of one phase: which windows there are, and the taps that they take.
struct PhaseAxis {
  WindowAxis windows{};
  TapAxis taps{};
  int64_t reach = 0;  // from the first tap's pixel to the last one's
};

PhaseAxis forward_axis(const ConvolutionAxis& axis) {
  return {.windows = {.pixels = axis.inputs, .windows = axis.outputs, .first = -axis.pad, .stride = axis.stride},
          .taps = {.count = static_cast<int>(axis.taps),
                   .first = 0,
                   .step = 1,
                   .offset_step = static_cast<int>(axis.dilation)},
          .reach = (axis.taps - 1) * axis.dilation};
}

// dx[phase + stride * i] takes dy[i + (phase + pad - t * dilation) / stride] at the taps t for which that divides.
PhaseAxis gradient_axis(const ConvolutionAxis& axis, int64_t phase) {
  const int64_t windows = phase < axis.inputs ? cuda::divide_up(axis.inputs - phase, axis.stride) : 0;
  PhaseAxis made{.windows = {.pixels = axis.outputs, .windows = windows, .first = 0, .stride = 1},
                 .taps = {.count = 0}};
  int64_t last_tap = 0, last_offset = 0;
  // From the last tap on, whose pixel is the first.
  for (int64_t tap = axis.taps - 1; tap >= 0; --tap) {
    const int64_t distance = phase + axis.pad - tap * axis.dilation;
    if (distance % axis.stride != 0) continue;
    const int64_t offset = distance / axis.stride;
    if (made.taps.count == 0) {
      made.taps.first = static_cast<int>(tap);
      made.windows.first = offset;
    } else {
      made.taps.step = static_cast<int>(tap - last_tap);
      made.taps.offset_step = static_cast<int>(offset - last_offset);
    }
    ++made.taps.count;
    made.reach = offset - made.windows.first;
    last_tap = tap;
    last_offset = offset;
  }
  return made;
}

// A phase with its windows, of which a tensor map is made for each run.
struct ConvolutionPlan {
  HalfPlan half;
  struct Axes {
    PhaseAxis rows, columns;
  };
  std::array<Axes, kMostPhases> axes;
  bool windows = true;    // none are gathered where a product of pixels does
  bool unfolded = false;  // windows are laid out in the workspace
  bool serves = true;
};

Windows windows_of(const PhaseAxis& rows, const PhaseAxis& columns) {
  return {.image = Divider(rows.windows.windows * columns.windows.windows),
          .columns = Divider(columns.windows.windows),
          .top = static_cast<int>(rows.windows.first),
          .left = static_cast<int>(columns.windows.first),
          .row_stride = static_cast<int>(rows.windows.stride),
          .column_stride = static_cast<int>(columns.windows.stride)};
}

// Puts a phase of `batch` images into the plan, of sums over `blocks` of K at each tap.
HalfPhase& add_phase(ConvolutionPlan& plan, int index, const PhaseAxis& rows, const PhaseAxis& columns, int64_t batch,
                     int64_t blocks) {
  HalfPhase& phase = plan.half.product.phase[static_cast<std::size_t>(index)];
  plan.axes[static_cast<std::size_t>(index)] = {rows, columns};
  phase.tap_rows = rows.taps;
  phase.tap_columns = columns.taps;
  const int64_t count = batch * rows.windows.windows * columns.windows.windows;
  const int64_t all_blocks = int64_t{rows.taps.count} * columns.taps.count * blocks;
  const bool fits = count <= kMostRows && all_blocks <= kMostRows;
  const bool gathered =
      all_blocks == 0 || (has_window_map(rows.windows, rows.reach) && has_window_map(columns.windows, columns.reach));
  plan.serves = plan.serves && fits && (gathered || !plan.windows);
  if (!plan.serves) return phase;
  phase.windows = windows_of(rows, columns);
  phase.rows = static_cast<int>(count);
  phase.blocks = static_cast<int>(all_blocks);
  return phase;
}

bool is_plain(const ConvolutionAxis& axis) { return axis.taps == 1 && axis.stride == 1 && axis.pad == 0; }

int64_t pixels_of(const ConvolutionShape& shape, int64_t ConvolutionAxis::*side) {
  return shape.batch * (shape.rows.*side) * (shape.columns.*side);
}

int64_t taps_of(const ConvolutionShape& shape) { return shape.rows.taps * shape.columns.taps; }

HalfLines unfolded_lines(const ConvolutionShape& shape) {
  return {
      .lines = pixels_of(shape, &ConvolutionAxis::outputs), .line = taps_of(shape) * shape.group_inputs, .made = true};
}

// K of a forward pass whose windows are lines.
void set_unfolded_taps(const ConvolutionShape& shape, HalfPhase& phase, ConvolutionPlan& plan) {
  phase.tap_rows = phase.tap_columns = {};
  phase.blocks = static_cast<int>(cuda::divide_up(unfolded_lines(shape).line, kHalfBlockK));
  plan.half.product.channel_blocks = Divider(phase.blocks);
}

void plan_forward(const ConvolutionShape& shape, ConvolutionPlan& plan) {
  HalfProduct& product = plan.half.product;
  const int64_t blocks = cuda::divide_up(shape.group_inputs, kHalfBlockK);
  HalfPhase& phase = add_phase(plan, 0, forward_axis(shape.rows), forward_axis(shape.columns), shape.batch, blocks);
  phase.places.row_pitch = shape.group_outputs;
  product.columns = static_cast<int>(shape.group_outputs);
  product.vectors = shape.group_outputs % 8 == 0;
  if (plan.unfolded) {
    set_unfolded_taps(shape, phase, plan);
    plan.half.a = unfolded_lines(shape);
    plan.half.b = {.lines = shape.group_outputs, .line = unfolded_lines(shape).line};
    return;
  }
  product.image_a = plan.windows;
  product.channel_blocks = Divider(blocks);
  plan.half.a = {.lines = pixels_of(shape, &ConvolutionAxis::inputs), .line = shape.group_inputs};
  plan.half.b = {.lines = shape.group_outputs * taps_of(shape), .line = shape.group_inputs};
}

void plan_backward_data(const ConvolutionShape& shape, ConvolutionPlan& plan) {
  HalfProduct& product = plan.half.product;
  const int64_t blocks = cuda::divide_up(shape.group_outputs, kHalfBlockK);
  const int64_t channels = shape.group_inputs;
  const int64_t row_stride = shape.rows.stride, column_stride = shape.columns.stride;
  plan.half.major_b = Major::kMN;
  plan.half.a = {.lines = pixels_of(shape, &ConvolutionAxis::outputs), .line = shape.group_outputs};
  plan.half.b = {.lines = shape.group_outputs * taps_of(shape), .line = channels};
  product.image_a = plan.windows;
  product.channel_blocks = Divider(blocks);
  product.columns = static_cast<int>(channels);
  product.vectors = channels % 8 == 0;
  plan.serves = plan.serves && row_stride * column_stride <= kMostPhases;
  if (!plan.serves) return;
  product.phases = 0;
  int slabs = 0;
  for (int64_t i = 0; i < row_stride; ++i) {
    for (int64_t j = 0; j < column_stride; ++j) {
      if (i >= shape.rows.inputs || j >= shape.columns.inputs) continue;  // no pixels
      HalfPhase& phase = add_phase(plan, product.phases, gradient_axis(shape.rows, i), gradient_axis(shape.columns, j),
                                   shape.batch, blocks);
      if (!plan.serves) return;
      const ConvolutionPlan::Axes& axes = plan.axes[static_cast<std::size_t>(product.phases)];
      const int64_t pixels = axes.rows.windows.windows * axes.columns.windows.windows;
      const bool scattered = row_stride * column_stride > 1;
      phase.places = {.scattered = scattered,
                      .image = Divider(pixels),
                      .columns = Divider(axes.columns.windows.windows),
                      .first = (i * shape.columns.inputs + j) * channels,
                      .image_pitch = shape.rows.inputs * shape.columns.inputs * channels,
                      .row_pitch = scattered ? row_stride * shape.columns.inputs * channels : channels,
                      .column_pitch = column_stride * channels};
      phase.first_slab = slabs;
      slabs += cuda::divide_up(phase.rows, kSlabRows);
      ++product.phases;
    }
  }
}

void plan_backward_filter(const ConvolutionShape& shape, ConvolutionPlan& plan) {
  HalfProduct& product = plan.half.product;
  const int64_t channels = shape.group_inputs, taps = taps_of(shape);
  const int64_t pixels = pixels_of(shape, &ConvolutionAxis::outputs);
  HalfPhase& phase = add_phase(plan, 0, forward_axis(shape.rows), forward_axis(shape.columns), shape.batch, 1);
  if (!plan.serves) return;
  phase.rows = static_cast<int>(shape.group_outputs);
  phase.blocks = static_cast<int>(cuda::divide_up(pixels, kHalfBlockK));
  phase.places.row_pitch = taps * channels;
  plan.half.major_a = plan.half.major_b = Major::kMN;
  plan.half.a = {.lines = pixels, .line = shape.group_outputs};
  plan.half.b = {.lines = pixels_of(shape, &ConvolutionAxis::inputs), .line = channels};
  product.vectors = channels * taps % 8 == 0;
  if (plan.unfolded) {
    plan.half.b = unfolded_lines(shape);
    product.channel_blocks = Divider(phase.blocks);
    product.columns = static_cast<int>(plan.half.b.line);
    return;
  }
  product.vectors = channels % 8 == 0;
  product.image_b = plan.windows;
  if (plan.windows) {
    const int64_t blocks = cuda::divide_up(channels, kHalfBlockK);
    plan.serves = taps * blocks * kHalfBlockK <= kMostRows;
    product.channel_blocks = Divider(blocks);
    product.columns = static_cast<int>(taps * blocks * kHalfBlockK);
    product.channels = static_cast<int>(channels);
  } else {
    product.channel_blocks = Divider(phase.blocks);
    product.columns = static_cast<int>(channels);
  }
}

ConvolutionPlan plan_of(const HalfConvolution& problem, int tile) {
  const ConvolutionShape& shape = problem.shape;
  ConvolutionPlan plan;
  plan.half.tile = tile;
  plan.half.element = problem.dtype == GPUNN_BF16 ? HalfElement::kBf16 : HalfElement::kF16;
  plan.half.product.filter_columns = static_cast<int>(shape.columns.taps);
  plan.half.product.epilogue.relu = problem.relu;
  plan.windows = !is_plain(shape.rows) || !is_plain(shape.columns);
  plan.unfolded = plan.windows && problem.pass != ConvolutionPass::backward_data && shape.group_inputs < kFewChannels;
  plan.serves = std::max(shape.group_inputs, shape.group_outputs) * taps_of(shape) <= kMostRows;
  if (!plan.serves) return plan;
  switch (problem.pass) {
    case ConvolutionPass::backward_data:
      plan_backward_data(shape, plan);
      break;
    case ConvolutionPass::backward_filter:
      plan_backward_filter(shape, plan);
      break;
    case ConvolutionPass::forward:
      plan_forward(shape, plan);
      break;
  }
  if (plan.serves) plan_tiles(plan.half, multiprocessors(), problem.gradient);
  return plan;
}

CUtensorMap matrix_map(const HalfLines& lines, const void* data, int box_outer) {
  return half_tensor_map({.data = data, .inner = lines.line, .taps = 1, .outer = lines.lines, .pitch = lines.pitch()},
                         box_outer);
}

// The windows of x as lines in `room`.
const void* unfold(const ConvolutionShape& shape, const ConvolutionPlan& plan, const void* x, void* room,
                   cudaStream_t stream) {
  const HalfLines lines = unfolded_lines(shape);
  unfold_half({.from = x,
               .to = room,
               .windows = windows_of(plan.axes[0].rows, plan.axes[0].columns),
               .count = lines.lines,
               .row_step = static_cast<int>(shape.rows.dilation),
               .column_step = static_cast<int>(shape.columns.dilation),
               .pixel_rows = static_cast<int>(shape.rows.inputs),
               .pixel_columns = static_cast<int>(shape.columns.inputs),
               .channels = Divider(shape.group_inputs),
               .filter_columns = Divider(shape.columns.taps),
               .line = static_cast<int>(lines.line),
               .pitch = static_cast<int>(lines.pitch())},
              stream);
  return room;
}

CUtensorMap windows_map(const ConvolutionPlan& plan, std::size_t phase, const HalfLines& lines, int64_t images,
                        const void* data, int pixels) {
  return window_tensor_map({.data = data,
                            .images = images,
                            .channels = lines.line,
                            .pitch = lines.pitch(),
                            .rows = plan.axes[phase].rows.windows,
                            .columns = plan.axes[phase].columns.windows},
                           pixels);
}

std::string refuses(const HalfConvolution& problem, int tile) {
  if (problem.shape.groups != 1) return "the channels are in groups";
  const HalfEndings endings = endings_of(tile);
  if (problem.statistics && endings == HalfEndings::kPlain) return "the tile makes no statistics";
  if (problem.gradient && endings != HalfEndings::kAll) return "the tile has no kernel for what is behind it";
  if (std::string refusal = half_refusal_of_gpu(); !refusal.empty()) return refusal;
  const ConvolutionPlan plan = plan_of(problem, tile);
  if (!plan.serves) return "its filters or strides are too large";
  if (plan.half.workspace_bytes() > kMostConvolutionWorkspace) return kTooMuchWorkspace;
  return is_countable(plan.half) ? std::string() : "a tensor is too large";
}

uint64_t workspace(const HalfConvolution& problem, int tile) { return plan_of(problem, tile).half.workspace_bytes(); }

void run_tile(const HalfConvolution& problem, int index, const HalfConvolutionArgs& args, cudaStream_t stream) {
  ConvolutionPlan plan = plan_of(problem, index);
  HalfPlan& half = plan.half;
  HalfProduct& product = half.product;
  const HalfTile& tile = half.tile_size();
  auto* const room = static_cast<uint8_t*>(args.workspace);
  const ConvolutionShape& shape = problem.shape;
  const auto place = [&](const HalfLines& lines, const void* input, void* to) {
    return lines.made ? unfold(shape, plan, input, to, stream) : place_lines(lines, input, to, stream);
  };
  const void* const a = place(half.a, args.inputs[0], room);
  const void* const b = place(half.b, args.inputs[1], room + half.a.copy_bytes());
  const bool gathered = plan.windows && !plan.unfolded;
  if (problem.pass == ConvolutionPass::backward_filter) {
    product.a[0] = matrix_map(half.a, a, kHalfBlockK);
    product.b =
        gathered ? windows_map(plan, 0, half.b, shape.batch, b, kHalfBlockK) : matrix_map(half.b, b, kHalfBlockK);
  } else {
    const int rows_a = tile.rows_fetched();
    for (std::size_t i = 0; i < static_cast<std::size_t>(product.phases); ++i) {
      // A phase without taps reads nothing; its map is never used.
      if (product.phase[i].blocks == 0) continue;
      product.a[i] = gathered ? windows_map(plan, i, half.a, shape.batch, a, rows_a) : matrix_map(half.a, a, rows_a);
    }
    product.b = half_tensor_map({.data = b,
                                 .inner = half.b.line,
                                 .taps = plan.unfolded ? 1 : taps_of(shape),
                                 .outer = shape.group_outputs,
                                 .pitch = half.b.pitch()},
                                half.major_b == Major::kK ? tile.columns_fetched() : kHalfBlockK);
  }
  run_half_product(half,
                   {.y = args.output,
                    .bias = args.bias,
                    .residual = args.residual,
                    .workspace = args.workspace,
                    .statistics = args.statistics,
                    .gradient = args.gradient},
                   multiprocessors(), stream);
}

void run(const HalfConvolution& problem, int tile, cudaStream_t stream, const OpArgs& args) {
  run_tile(problem, tile, half_arguments(problem, args), stream);
}

}  // namespace

std::string half_key_of(const HalfConvolution& problem) {
  std::string key = text_of(problem.pass, {.bias = problem.bias, .residual = problem.residual, .relu = problem.relu});
  if (problem.statistics) key += "_statistics";
  if (problem.gradient) key += "_norm";
  return key + " " + text_of(problem.shape) + " " + ops::dtype_text(problem.dtype) + " tensors channels-last";
}

HalfConvolution half_forward_problem(const OpDesc& desc) {
  return problem_of(desc, ConvolutionPass::forward, convolution_of(desc));
}

HalfConvolution half_backward_data_problem(const OpDesc& desc) {
  return problem_of(desc, ConvolutionPass::backward_data, convolution_backward_data_of(desc));
}

std::vector<Variant<HalfConvolution>> half_convolution_variants() {
  return half_variants<HalfConvolution, refuses, workspace, run>("conv:half_");
}

namespace {

// By kernel: the tiles, then kPatchKernel.
std::vector<Variant<HalfConvolution>> ended_variants() {
  std::vector<Variant<HalfConvolution>> variants = half_convolution_variants();
  variants.push_back(patch_variant());
  return variants;
}

}  // namespace

HalfConvolutionArgs half_arguments(const HalfConvolution& problem, const OpArgs& args) {
  return {.inputs = {args.in<void>(0), args.in<void>(1)},
          .bias = problem.bias ? args.in<float>(2) : nullptr,
          .residual = problem.residual ? args.in<void>(3) : nullptr,
          .output = args.out<void>(0),
          .workspace = args.workspace<void>()};
}

std::vector<int> half_kernels(const HalfConvolution& problem) {
  const std::vector<Variant<HalfConvolution>> variants = ended_variants();
  std::vector<int> kernels;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].refuses(problem).empty()) kernels.push_back(static_cast<int>(i));
  }
  return kernels;
}

int choose_half_kernel(TiledDevice& device, const OpDesc& desc, const HalfConvolution& problem) {
  const VariantList<HalfConvolution> list{ended_variants()};
  const std::string chosen = choose_variant(device, desc, list, problem, half_key_of(problem))->name();
  const auto found = std::ranges::find(list.variants, chosen, &Variant<HalfConvolution>::name);
  return static_cast<int>(found - list.variants.begin());
}

std::string half_kernel_name(int kernel) { return ended_variants()[static_cast<std::size_t>(kernel)].name; }

uint64_t half_kernels_workspace(const HalfConvolution& problem, const std::vector<int>& kernels) {
  const std::vector<Variant<HalfConvolution>> variants = ended_variants();
  uint64_t bytes = 0;
  for (const int kernel : kernels) {
    bytes = std::max(bytes, variants[static_cast<std::size_t>(kernel)].workspace_of(problem));
  }
  return bytes;
}

void run_half_kernel(const HalfConvolution& problem, int kernel, const HalfConvolutionArgs& args, cudaStream_t stream) {
  if (kernel == kPatchKernel) return run_patch_convolution(problem, args, stream);
  run_tile(problem, kernel, args, stream);
}

HalfSlabs half_slabs(const HalfConvolution& problem, int kernel) {
  if (kernel == kPatchKernel) return patch_slabs(problem);
  const HalfProduct product = plan_of(problem, kernel).half.product;
  const HalfPhase& last = product.phase[static_cast<std::size_t>(product.phases - 1)];
  return {.count = last.first_slab + cuda::divide_up(last.rows, kSlabRows), .rows = equal_slabs(last.rows, kSlabRows)};
}

void add_half_convolution_kernels(TiledDevice& device) {
  const auto add = [&](int32_t op, HalfConvolution (*problem)(const OpDesc&),
                       const std::vector<Variant<HalfConvolution>>& special) {
    std::vector<Variant<HalfConvolution>> variants = half_convolution_variants();
    variants.insert(variants.end(), special.begin(), special.end());
    add_variants(device, op, problem, half_key_of, std::move(variants), Dtypes::floating, Layouts::channels_last_too);
  };
  add(GPUNN_OP_CONV2D, half_forward_problem, {stem_variant(), narrow_variant(), patch_variant()});
  add(GPUNN_OP_CONV2D_BIAS_ACTIVATION, bias_activation_problem_of_half,
      {stem_variant(), narrow_variant(), patch_variant()});
  add(GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION, bias_add_activation_problem, {patch_variant()});
  add(GPUNN_OP_CONV2D_BACKWARD_DATA, half_backward_data_problem, {patch_variant()});
  add(GPUNN_OP_CONV2D_BACKWARD_FILTER, backward_filter_problem, {stem_variant(), patch_wgrad_variant()});
}

}  // namespace gpunn::cuda_tiled
