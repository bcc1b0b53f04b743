// QUANTIZE, DEQUANTIZE, FAKE_QUANTIZE, QUANTIZE_FILTER, QUANTIZED_CONV2D, QUANTIZED_LINEAR and
// QUANTIZED_GLOBAL_AVG_POOL2D.
#include "common/quantization.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "add_op.hpp"
#include "convolution/constant_filter.hpp"
#include "convolution/quantized_convolution.hpp"
#include "int8/int8_products.hpp"
#include "kernels.hpp"
#include "simd/int8.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr float kLargestInt8 = 255;

void run_quantize(const Quantize& plan, const OpArgs& args) {
  const Int8Kernels& kernels = GPUNN_SELECT_ISA(int8_kernels);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    kernels.quantize(args.in<float>(0) + begin, plan.scale, plan.zero_point, args.out<uint8_t>(0) + begin, end - begin);
  });
}

void run_dequantize(const Quantize& plan, const OpArgs& args) {
  const Int8Kernels& kernels = GPUNN_SELECT_ISA(int8_kernels);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    kernels.dequantize(args.in<uint8_t>(0) + begin, plan.scale, plan.zero_point, args.out<float>(0) + begin,
                       end - begin);
  });
}

void run_fake_quantize(const Quantize& plan, const OpArgs& args) {
  constexpr int64_t kPiece = 4096;
  const Int8Kernels& kernels = GPUNN_SELECT_ISA(int8_kernels);
  parallel_ranges(plan.n, kPiece, [&](int64_t begin, int64_t end) {
    uint8_t stored[kPiece];
    kernels.quantize(args.in<float>(0) + begin, plan.scale, plan.zero_point, stored, end - begin);
    kernels.dequantize(stored, plan.scale, plan.zero_point, args.out<float>(0) + begin, end - begin);
  });
}

// Once for a model: quotients are formed in double, so that no rounding decides at a tie.
void run_quantize_filter(const Filters& plan, const OpArgs& args) {
  constexpr float kLargestWeight = 127;
  constexpr double kFilterZero = 128;
  parallel_for(plan.filters, [&](int64_t k) {
    const float* w = args.in<float>(0) + k * plan.size;
    uint8_t* q = args.out<uint8_t>(0) + k * plan.size;
    float most = 0;
    for (int64_t i = 0; i < plan.size; ++i) most = std::abs(w[i]) > most ? std::abs(w[i]) : most;
    const float scale = most > 0 ? static_cast<float>(static_cast<double>(most) / kLargestWeight) : 1;
    args.out<float>(1)[k] = scale;
    for (int64_t i = 0; i < plan.size; ++i) {
      const double whole = std::nearbyint(static_cast<double>(w[i]) / static_cast<double>(scale)) + kFilterZero;
      const double cut = whole > 0 ? whole : 0;  // a NaN too
      q[i] = static_cast<uint8_t>(cut < kLargestInt8 ? cut : kLargestInt8);
    }
  });
}

// A tensor [images, channels, pixels] with its channels last, or back.
struct ByteTurn {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t pixels = 0;

  uint64_t bytes() const { return static_cast<uint64_t>(images * channels * pixels); }
  bool moves_nothing() const { return channels == 1 || pixels == 1; }
  void run(const uint8_t* x, uint8_t* y, bool back) const {
    parallel_for(images, [&](int64_t image) {
      const int64_t first = image * channels * pixels;
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t packed = first + c * pixels + p;
          const int64_t turned = first + p * channels + c;
          y[back ? packed : turned] = x[back ? turned : packed];
        }
      }
    });
  }
};

ByteTurn byte_turn_of(const gpunn_tensor& tensor) {
  return {.images = tensor.dim[0], .channels = tensor.dim[1], .pixels = tensor.dim[2] * tensor.dim[3]};
}

// Where a rearranged filter lies: it is kept if it is constant, and else made in the workspace at each run.
struct PackedFilter {
  std::shared_ptr<ConstantFilter> constant;  // null: it is not
  uint64_t offset = 0;                       // in the workspace

  static PackedFilter constant_of(const QuantizedConvolution& convolution, uint64_t offset) {
    return {std::make_shared<ConstantFilter>(convolution.filter_layout(), convolution.packed_bytes()), offset};
  }
  const void* get(const QuantizedConvolution& convolution, const uint8_t* filter, std::byte* workspace) const {
    const auto pack = [&](void* to) { convolution.pack_filter(filter, to); };
    if (constant != nullptr) return constant->get(filter, pack);
    pack(workspace + offset);
    return workspace + offset;
  }
};

struct QuantizedPlan {
  std::shared_ptr<const QuantizedConvolution> convolution;
  PackedFilter packed;
  bool residual = false;
  bool turned = false;  // the images are packed: they are turned around the kernel of channels-last ones
  ByteTurn x, filter, y;
  uint64_t turned_offset = 0;  // of x, the filter, the residual and y in the other layout
  uint64_t workspace_bytes = 0;
  int score = 1;
};

uint64_t to_line(uint64_t bytes) {
  constexpr uint64_t kAlignment = 64;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Of two layouts, and each kind of products, the better ones have higher scores.
int score_of(int kind, bool turned) { return 2 * kind + (turned ? 1 : 2); }

QuantizedPlan plan_quantized(const OpDesc& desc, int threads, const Int8Products& products, int kind) {
  QuantizedPlan plan;
  plan.x = byte_turn_of(desc.input(0));
  plan.filter = byte_turn_of(desc.input(1));
  plan.y = byte_turn_of(desc.output(0));
  const bool alike = plan.x.moves_nothing() && plan.filter.moves_nothing() && plan.y.moves_nothing();
  plan.turned = !alike && !plugin::has_channels_last(desc);
  plan.score = score_of(kind, plan.turned);
  plan.convolution = std::make_shared<const QuantizedConvolution>(
      convolution_of(desc), desc.attrs<gpunn_quantized_conv2d_attrs>(), threads, products);
  plan.residual = desc.inputs() > 4;
  plan.packed.offset = to_line(plan.convolution->scratch_bytes());
  plan.turned_offset = plan.packed.offset + to_line(plan.convolution->packed_bytes());
  plan.workspace_bytes = plan.turned_offset;
  if (plan.turned) {
    plan.workspace_bytes += to_line(plan.x.bytes()) + to_line(plan.filter.bytes()) + 2 * to_line(plan.y.bytes());
  } else if (desc.is_constant(1)) {
    plan.packed = PackedFilter::constant_of(*plan.convolution, plan.packed.offset);
  }
  return plan;
}

void run_turned(const QuantizedPlan& plan, const OpArgs& args) {
  auto* const workspace = args.workspace<std::byte>();
  auto* at = reinterpret_cast<uint8_t*>(workspace + plan.turned_offset);
  const auto turned = [&](const uint8_t* from, const ByteTurn& turn) {
    uint8_t* const to = at;
    at += to_line(turn.bytes());
    if (from != nullptr) turn.run(from, to, false);
    return to;
  };
  const uint8_t* const x = turned(args.in<uint8_t>(0), plan.x);
  const uint8_t* const filter = turned(args.in<uint8_t>(1), plan.filter);
  const uint8_t* const residual = plan.residual ? turned(args.in<uint8_t>(4), plan.y) : nullptr;
  uint8_t* const y = turned(nullptr, plan.y);
  plan.convolution->run({.x = x,
                         .packed = plan.packed.get(*plan.convolution, filter, workspace),
                         .scale = args.in<float>(2),
                         .bias = args.in<float>(3),
                         .residual = residual,
                         .y = y},
                        workspace);
  plan.y.run(y, args.out<uint8_t>(0), true);
}

void run_quantized(const QuantizedPlan& plan, const OpArgs& args) {
  if (plan.turned) return run_turned(plan, args);
  auto* const workspace = args.workspace<std::byte>();
  plan.convolution->run({.x = args.in<uint8_t>(0),
                         .packed = plan.packed.get(*plan.convolution, args.in<uint8_t>(1), workspace),
                         .scale = args.in<float>(2),
                         .bias = args.in<float>(3),
                         .residual = plan.residual ? args.in<uint8_t>(4) : nullptr,
                         .y = args.out<uint8_t>(0)},
                        workspace);
}

struct LinearPlan {
  std::shared_ptr<const QuantizedConvolution> product;
  PackedFilter packed;
  bool bias = false;
  uint64_t workspace_bytes = 0;
  int score = 1;
};

LinearPlan plan_linear(const OpDesc& desc, int threads, const Int8Products& products, int kind) {
  const QuantizedLinear layer = quantized_linear_of(desc);
  LinearPlan plan;
  plan.product = std::make_shared<const QuantizedConvolution>(layer.shape, layer.attrs, threads, products);
  plan.score = score_of(kind, false);
  plan.bias = layer.bias;
  plan.packed.offset = to_line(plan.product->scratch_bytes());
  plan.workspace_bytes = plan.packed.offset;
  if (desc.is_constant(1)) {
    plan.packed = PackedFilter::constant_of(*plan.product, plan.packed.offset);
  } else {
    plan.workspace_bytes += to_line(plan.product->packed_bytes());
  }
  return plan;
}

void run_linear(const LinearPlan& plan, const OpArgs& args) {
  auto* const workspace = args.workspace<std::byte>();
  plan.product->run({.x = args.in<uint8_t>(0),
                     .packed = plan.packed.get(*plan.product, args.in<uint8_t>(1), workspace),
                     .scale = args.in<float>(2),
                     .bias = plan.bias ? args.in<float>(3) : nullptr,
                     .numbers = args.out<float>(0)},
                    workspace);
}

uint8_t stored_mean(const QuantizedMean& mean, int64_t sum) {
  const double average = static_cast<double>(sum) * mean.attrs.x_scale / static_cast<double>(mean.pixels);
  const double whole = std::nearbyint(average / mean.attrs.y_scale) + mean.attrs.y_zero_point;
  return static_cast<uint8_t>(std::clamp(whole, 0.0, static_cast<double>(kLargestInt8)));
}

// A task is some channels of an image.
void run_mean_channels_last(const QuantizedMean& mean, const OpArgs& args) {
  constexpr int64_t kAtOnce = 64;
  const Int8Kernels& kernels = GPUNN_SELECT_ISA(int8_kernels);
  int16_t ones[kAtOnce];
  std::fill_n(ones, kAtOnce, int16_t{1});
  const int64_t parts = divide_up(mean.channels, kAtOnce);
  parallel_for(mean.images * parts, [&](int64_t task) {
    const int64_t image = task / parts, first = task % parts * kAtOnce;
    const int64_t count = std::min(kAtOnce, mean.channels - first);
    const uint8_t* const x = args.in<uint8_t>(0) + image * mean.pixels * mean.channels + first;
    int32_t sums[kAtOnce] = {};
    for (int64_t p = 0; p < mean.pixels; ++p) {
      kernels.accumulate(x + p * mean.channels, mean.attrs.x_zero_point, ones, sums, count);
    }
    uint8_t* const y = args.out<uint8_t>(0) + image * mean.channels + first;
    for (int64_t c = 0; c < count; ++c) y[c] = stored_mean(mean, sums[c]);
  });
}

void run_mean(const QuantizedMean& mean, const OpArgs& args) {
  if (mean.channels_last) return run_mean_channels_last(mean, args);
  parallel_ranges(mean.images * mean.channels, rows_per_task(mean.pixels), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const uint8_t* const x = args.in<uint8_t>(0) + plane * mean.pixels;
      int64_t sum = -mean.pixels * mean.attrs.x_zero_point;
      for (int64_t p = 0; p < mean.pixels; ++p) sum += x[p];
      args.out<uint8_t>(0)[plane] = stored_mean(mean, sum);
    }
  });
}

}  // namespace

void add_quantization_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_QUANTIZE, quantize_of, run_quantize, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_DEQUANTIZE, quantize_of, run_dequantize, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_FAKE_QUANTIZE, quantize_of, run_fake_quantize, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_QUANTIZE_FILTER, filters_of, run_quantize_filter);
  const int threads = thread_count();
  int kind = 0;
  for (const Int8Products& products : usable_int8_products()) {
    const std::string name = std::string("quantized:") + products.name;
    serve(
        device, GPUNN_OP_QUANTIZED_CONV2D,
        [=](const OpDesc& desc) { return plan_quantized(desc, threads, products, kind); }, run_quantized, Dtypes::f32,
        Layouts::channels_last_too, name);
    serve(
        device, GPUNN_OP_QUANTIZED_LINEAR,
        [=](const OpDesc& desc) { return plan_linear(desc, threads, products, kind); }, run_linear, Dtypes::f32,
        Layouts::packed, name);
    ++kind;
  }
  add_op(device, GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D, quantized_mean_of, run_mean, Dtypes::f32,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cpu
