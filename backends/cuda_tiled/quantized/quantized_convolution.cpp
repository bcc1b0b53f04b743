#include "quantized/quantized_convolution.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "architecture.hpp"
#include "common/quantization.hpp"
#include "kernels.hpp"
#include "quantized/quantized_stem.hpp"
#include "quantized/quantized_wgmma.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 30;  // of pixels, terms, and channels of an image
constexpr int64_t kMostGroups = 65535;              // of a grid's second dimension
constexpr int64_t kFirstOffset = 256;               // in the workspace, behind the padding

void require_served(const ConvolutionShape& shape) {
  const int64_t channels = shape.groups * std::max(shape.group_inputs, shape.group_outputs);
  require(shape.batch * shape.rows.outputs * shape.columns.outputs <= kMostNumbers &&
              terms_of(ConvolutionPass::forward, shape) <= kMostNumbers &&
              channels * shape.rows.inputs * shape.columns.inputs <= kMostNumbers && shape.groups <= kMostGroups,
          "is for tensors of fewer than 2^30 pixels, terms, and numbers of an image");
}

QuantizedConvolution problem_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_quantized_conv2d_attrs>();
  for (const gpunn_tensor* tensor : {&desc.input(0), &desc.input(1), &desc.output(0)}) {
    require(plugin::is_channels_last(*tensor), "is for channels-last images and filters");
  }
  const ConvolutionShape shape = convolution_of(desc);
  require_served(shape);
  return {.shape = shape,
          .attrs = attrs,
          .relu = is_relu(attrs.activation),
          .residual = desc.inputs() > 4,
          .terms = terms_of(ConvolutionPass::forward, shape)};
}

QuantizedConvolution dense_problem_of(const OpDesc& desc) {
  const QuantizedLinear layer = quantized_linear_of(desc);
  require_served(layer.shape);
  return {
      .shape = layer.shape, .attrs = layer.attrs, .dense = true, .bias = layer.bias, .terms = layer.shape.group_inputs};
}

std::string key_of(const QuantizedConvolution& problem) {
  return (problem.dense ? "quantized_linear " : "quantized_conv2d ") + text_of(problem.shape) +
         (problem.residual ? " residual" : "") + (problem.attrs.x_zero_point != 0 ? " zero point" : "");
}

bool has_whole_chunks(const QuantizedConvolution& problem) { return problem.shape.group_inputs % 16 == 0; }

std::string refuses(const QuantizedConvolution& problem, bool gathers) {
  constexpr int kAmpere = 80;
  if (compute_capability() < kAmpere) return "needs compute capability 8.0";
  if (!gathers && !has_whole_chunks(problem)) return "is for groups of a multiple of 16 channels";
  if (gathers && has_whole_chunks(problem)) return "is for groups of other than a multiple of 16 channels";
  return "";
}

std::string refuses_rows(const QuantizedConvolution& problem) {
  if (!problem.dense || problem.shape.batch > kMostDenseRows) return "is for dense layers of up to 8 rows";
  return has_whole_chunks(problem) ? "" : "is for terms of a multiple of 16";
}

uint64_t workspace_bytes(const QuantizedConvolution& problem) {
  if (problem.attrs.x_zero_point == 0) return 0;
  const int64_t filters = problem.shape.groups * problem.shape.group_outputs;
  return static_cast<uint64_t>(kFirstOffset) + static_cast<uint64_t>(filters) * sizeof(int32_t);
}

QuantizedArguments arguments_of(const QuantizedConvolution& problem, const OpArgs& args) {
  const ConvolutionShape& shape = problem.shape;
  const gpunn_quantized_conv2d_attrs& attrs = problem.attrs;
  const auto narrow = [](int64_t number) { return static_cast<int>(number); };
  QuantizedArguments a;
  a.x = args.in<uint8_t>(0);
  a.w = args.in<uint8_t>(1);
  a.scale = args.in<float>(2);
  a.bias = problem.bias ? args.in<float>(3) : nullptr;
  a.residual = problem.residual ? args.in<uint8_t>(4) : nullptr;
  a.y = problem.dense ? nullptr : args.out<uint8_t>(0);
  a.numbers = problem.dense ? args.out<float>(0) : nullptr;
  a.pixels = narrow(shape.batch * shape.rows.outputs * shape.columns.outputs);
  a.output_image = Divider(shape.rows.outputs * shape.columns.outputs);
  a.output_columns = Divider(shape.columns.outputs);
  a.rows = narrow(shape.rows.inputs);
  a.columns = narrow(shape.columns.inputs);
  a.channels = narrow(shape.groups * shape.group_inputs);
  a.group_channels = narrow(shape.group_inputs);
  a.taps_in_row = narrow(shape.columns.taps);
  a.row_stride = narrow(shape.rows.stride);
  a.column_stride = narrow(shape.columns.stride);
  a.row_pad = narrow(shape.rows.pad);
  a.column_pad = narrow(shape.columns.pad);
  a.row_dilation = narrow(shape.rows.dilation);
  a.column_dilation = narrow(shape.columns.dilation);
  a.terms = narrow(problem.terms);
  a.outputs = narrow(shape.group_outputs);
  a.all_outputs = narrow(shape.groups * shape.group_outputs);
  a.groups = narrow(shape.groups);
  a.vectors = shape.group_outputs % 16 == 0;
  a.x_zero_point = static_cast<uint32_t>(attrs.x_zero_point);
  a.x_scale = attrs.x_scale;
  a.y_scale = attrs.y_scale;
  a.residual_factor = problem.residual ? attrs.residual_scale / attrs.y_scale : 0.0F;
  a.residual_zero = problem.residual ? static_cast<float>(attrs.residual_zero_point) : 0.0F;
  a.y_zero_point = attrs.y_zero_point;
  a.low = problem.relu ? a.y_zero_point : 0;
  return a;
}

// The arguments, once the workspace has what a zero point of x needs.
QuantizedArguments prepared_arguments(const QuantizedConvolution& problem, cudaStream_t stream, const OpArgs& args) {
  QuantizedArguments a = arguments_of(problem, args);
  if (problem.attrs.x_zero_point != 0) {
    auto* const padding = args.workspace<uint8_t>();
    auto* const first = reinterpret_cast<int32_t*>(padding + kFirstOffset);
    prepare_zero_point(a.w, a.all_outputs, a.terms, problem.attrs.x_zero_point, first, padding, stream);
    a.padding = padding;
    a.first = first;
  }
  return a;
}

void run(const QuantizedConvolution& problem, int tile, bool gathers, cudaStream_t stream, const OpArgs& args) {
  (gathers ? launch_gathered : launch_quantized)(tile, prepared_arguments(problem, stream, args), stream);
}

template <int tile, bool gathers>
Variant<QuantizedConvolution> variant_of_tile(const char* name) {
  return {.name = name,
          .refuses = [](const QuantizedConvolution& problem) { return refuses(problem, gathers); },
          .workspace_bytes = workspace_bytes,
          .run = [](const QuantizedConvolution& problem, cudaStream_t stream,
                    const OpArgs& args) { run(problem, tile, gathers, stream, args); }};
}

template <int tile>
Variant<QuantizedConvolution> wgmma_variant_of_tile(const char* name) {
  return {.name = name,
          .refuses = [](const QuantizedConvolution& problem) -> std::string {
            constexpr int kHopper = 90;
            if (compute_capability() != kHopper) return "is for GPUs of compute capability 9.0";
            if (problem.shape.group_inputs % 64 != 0) return "is for groups of a multiple of 64 channels";
            return quantized_wgmma_plan(problem.shape, tile) ? "" : "its patches are not for this shape";
          },
          .workspace_bytes = workspace_bytes,
          .run =
              [](const QuantizedConvolution& problem, cudaStream_t stream, const OpArgs& args) {
                launch_quantized_wgmma(tile, quantized_wgmma_plan(problem.shape, tile).value(),
                                       prepared_arguments(problem, stream, args), stream);
              }};
}

Variant<QuantizedConvolution> quantized_stem_variant() {
  return {.name = "quantized:stem",
          .refuses = [](const QuantizedConvolution& problem) -> std::string {
            constexpr int kAmpere = 80;
            if (compute_capability() < kAmpere) return "needs compute capability 8.0";
            if (problem.dense || problem.residual) return "is for convolutions without a residual branch";
            return quantized_stem_plan(problem.shape) ? "" : "is for one group of up to 4 channels, and small filters";
          },
          .run =
              [](const QuantizedConvolution& problem, cudaStream_t stream, const OpArgs& args) {
                launch_quantized_stem(quantized_stem_plan(problem.shape).value(), arguments_of(problem, args),
                                      multiprocessors(), stream);
              }};
}

std::vector<Variant<QuantizedConvolution>> quantized_variants() {
  return {
      variant_of_tile<0, false>("quantized:128x128"),      variant_of_tile<1, false>("quantized:128x128_deep"),
      variant_of_tile<2, false>("quantized:128x256"),      variant_of_tile<3, false>("quantized:256x128"),
      variant_of_tile<4, false>("quantized:256x64"),       variant_of_tile<5, false>("quantized:128x64"),
      variant_of_tile<6, false>("quantized:64x64"),        variant_of_tile<0, true>("quantized:gather_128x64"),
      variant_of_tile<1, true>("quantized:gather_64x64"),  quantized_stem_variant(),
      wgmma_variant_of_tile<0>("quantized:wgmma_128x128"), wgmma_variant_of_tile<1>("quantized:wgmma_256x128"),
      wgmma_variant_of_tile<2>("quantized:wgmma_256x64"),  wgmma_variant_of_tile<3>("quantized:wgmma_128x64"),
  };
}

}  // namespace

void add_quantized_convolution_kernels(TiledDevice& device) {
  std::vector<Variant<QuantizedConvolution>> dense = quantized_variants();
  dense.push_back({.name = "quantized:rows",
                   .refuses = refuses_rows,
                   .run = [](const QuantizedConvolution& problem, cudaStream_t stream, const OpArgs& args) {
                     launch_dense_rows(arguments_of(problem, args), stream);
                   }});
  add_variants(device, GPUNN_OP_QUANTIZED_LINEAR, dense_problem_of, key_of, std::move(dense));
  add_variants(device, GPUNN_OP_QUANTIZED_CONV2D, problem_of, key_of, quantized_variants(), Dtypes::f32,
               Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
