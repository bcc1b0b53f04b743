// REFLECT_PAD2D, UPSAMPLE2D by copies, and their gradients, of channels-last images. A thread moves up to 16 bytes of
// neighbouring channels of one pixel, so that neighbouring threads read and write neighbouring memory. In the gradients
// it gathers what flows back to its pixel, which the cache serves where pixels are neighbours.
#include <cstdint>
#include <limits>

#include "common/reflect_pad.hpp"
#include "common/upsampling.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "divider.cuh"
#include "kernels.hpp"
#include "pack.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

// The copies of a pixel along an axis: those at `at`, as far as they are not below 0.
template <int count>
struct Copies {
  int at[count];
};

struct MirroredAxis {
  static constexpr int kCopies = 3;
  int inputs, before, after;

  explicit MirroredAxis(const ReflectAxis& axis)
      : inputs(static_cast<int>(axis.inputs)),
        before(static_cast<int>(axis.before)),
        after(static_cast<int>(axis.after)) {}

  int outputs() const { return before + inputs + after; }
  __device__ int source(int output) const {
    const int place = abs(output - before);
    return place < inputs ? place : 2 * (inputs - 1) - place;
  }
  __device__ Copies<kCopies> copies(int i) const {
    const int behind = i < inputs - 1 && i >= inputs - 1 - after ? before + 2 * (inputs - 1) - i : -1;
    return {{before + i, i >= 1 && i <= before ? before - i : -1, behind}};
  }
};

// Each input `factor` times.
struct RepeatedAxis {
  static constexpr int kCopies = 4;  // at most
  int inputs, factor;
  Divider by_factor;

  explicit RepeatedAxis(const UpsampleAxis& axis)
      : inputs(static_cast<int>(axis.inputs)), factor(static_cast<int>(axis.factor)), by_factor(axis.factor) {}

  int outputs() const { return inputs * factor; }
  __device__ int source(int output) const { return by_factor(output).quotient; }
  __device__ Copies<kCopies> copies(int i) const {
    Copies<kCopies> copies;
#pragma unroll
    for (int k = 0; k < kCopies; ++k) copies.at[k] = k < factor ? i * factor + k : -1;
    return copies;
  }
};

// Images [rows, columns, packs], by the packs of those that a kernel writes.
template <class Axis>
struct Images {
  Axis rows, columns;
  int packs;  // of a pixel
  int count;  // of threads
  Divider by_packs, by_columns, by_rows;
};

struct Place {
  int image, row, column, pack;
};

template <class Axis>
__device__ __forceinline__ Place place_of(const Images<Axis>& z, int i) {
  const auto [pixel, pack] = z.by_packs(i);
  const auto [line, column] = z.by_columns(pixel);
  const auto [image, row] = z.by_rows(line);
  return {image, row, column, pack};
}

template <class T, int width, class Axis>
__global__ void __launch_bounds__(cuda::kThreads)
    copy_pixels(const Pack<T, width>* x, Pack<T, width>* y, Images<Axis> z) {
  const int i = static_cast<int>(blockIdx.x * cuda::kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Place at = place_of(z, i);
  const int row = at.image * z.rows.inputs + z.rows.source(at.row);
  y[i] = x[(int64_t{row} * z.columns.inputs + z.columns.source(at.column)) * z.packs + at.pack];
}

template <class T, int width, class Axis>
__global__ void __launch_bounds__(cuda::kThreads)
    gather_pixels(const Pack<T, width>* dy, Pack<T, width>* dx, Images<Axis> z, int rows, int columns) {
  const int i = static_cast<int>(blockIdx.x * cuda::kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Place at = place_of(z, i);
  const Copies<Axis::kCopies> of_row = z.rows.copies(at.row), of_column = z.columns.copies(at.column);
  float sums[width] = {};
#pragma unroll
  for (const int row : of_row.at) {
#pragma unroll
    for (const int column : of_column.at) {
      if (row < 0 || column < 0) continue;
      const int64_t pixel = int64_t{at.image * rows + row} * columns + column;
      const Pack<T, width> pack = dy[pixel * z.packs + at.pack];
#pragma unroll
      for (int k = 0; k < width; ++k) sums[k] += static_cast<float>(pack.values[k]);
    }
  }
  Pack<T, width> sum;
#pragma unroll
  for (int k = 0; k < width; ++k) sum.values[k] = static_cast<T>(sums[k]);
  dx[i] = sum;
}

// Images, and which op they are padded or enlarged by.
template <class Axis>
struct Plan {
  Axis rows, columns;
  int64_t images, channels;
};

template <class Axis>
Plan<Axis> plan_of(const Axis& rows, const Axis& columns, int64_t images, int64_t channels) {
  const int64_t pixels = images * int64_t{rows.outputs()} * columns.outputs();
  require(pixels * channels > 0, "there is nothing to move");
  require(pixels * channels < std::numeric_limits<int32_t>::max(), "is for fewer than 2^31 elements");
  return {rows, columns, images, channels};
}

Plan<MirroredAxis> reflect_plan(const ReflectPad& pad) {
  require(pad.channels_last, "packed images: the base reads them as well");
  return plan_of(MirroredAxis(pad.rows), MirroredAxis(pad.columns), pad.images, pad.channels);
}

Plan<MirroredAxis> plan_pad(const OpDesc& desc) { return reflect_plan(reflect_pad_of(desc)); }
Plan<MirroredAxis> plan_pad_backward(const OpDesc& desc) { return reflect_plan(reflect_pad_backward_of(desc)); }

Plan<RepeatedAxis> upsample_plan(const OpDesc& desc, const Upsample& up, const gpunn_tensor& smaller) {
  require(plugin::has_channels_last(desc), "packed images: the base reads them as well");
  require(!up.rows.bilinear, "bilinear: the base has it");
  const auto most = int64_t{RepeatedAxis::kCopies};
  require(up.rows.factor <= most && up.columns.factor <= most, "is for factors of at most 4");
  return plan_of(RepeatedAxis(up.rows), RepeatedAxis(up.columns), smaller.dim[0], smaller.dim[1]);
}

Plan<RepeatedAxis> plan_upsample(const OpDesc& desc) { return upsample_plan(desc, upsample_of(desc), desc.input(0)); }
Plan<RepeatedAxis> plan_upsample_backward(const OpDesc& desc) {
  return upsample_plan(desc, upsample_backward_of(desc), desc.output(0));
}

// Calls run(a constant, the images): as many channels at a time as divide those of a pixel, at most 16 bytes.
template <class T, class Axis, class Run>
void by_width(const Plan<Axis>& plan, bool by_inputs, const Run& run) {
  const auto with = [&](auto width) {
    const int64_t rows = by_inputs ? plan.rows.inputs : plan.rows.outputs();
    const int64_t columns = by_inputs ? plan.columns.inputs : plan.columns.outputs();
    const int64_t packs = plan.channels / width;
    run(width, Images<Axis>{.rows = plan.rows,
                            .columns = plan.columns,
                            .packs = static_cast<int>(packs),
                            .count = static_cast<int>(plan.images * rows * columns * packs),
                            .by_packs = Divider(packs),
                            .by_columns = Divider(columns),
                            .by_rows = Divider(rows)});
  };
  constexpr int kWidest = 16 / sizeof(T);
  if (plan.channels % kWidest == 0) {
    with(std::integral_constant<int, kWidest>());
  } else if (plan.channels % 2 == 0) {
    with(std::integral_constant<int, 2>());
  } else {
    with(std::integral_constant<int, 1>());
  }
}

template <class T, class Axis>
void run_copies(const Plan<Axis>& plan, cudaStream_t stream, const OpArgs& args) {
  by_width<T>(plan, false, [&](auto width, const Images<Axis>& z) {
    using Packs = Pack<T, width()>;
    launch(copy_pixels<T, width(), Axis>, thread_each(z.count), stream, reinterpret_cast<const Packs*>(args.in<T>(0)),
           reinterpret_cast<Packs*>(args.out<T>(0)), z);
  });
}

template <class T, class Axis>
void run_gradients(const Plan<Axis>& plan, cudaStream_t stream, const OpArgs& args) {
  by_width<T>(plan, true, [&](auto width, const Images<Axis>& z) {
    using Packs = Pack<T, width()>;
    launch(gather_pixels<T, width(), Axis>, thread_each(z.count), stream, reinterpret_cast<const Packs*>(args.in<T>(0)),
           reinterpret_cast<Packs*>(args.out<T>(0)), z, plan.rows.outputs(), plan.columns.outputs());
  });
}

template <class Axis, class PlanOf>
void add(TiledDevice& device, int32_t op, const char* name, PlanOf plan, bool gradient) {
  if (gradient) {
    add_op(device, op, name, plan, each_floating([](auto x) { return run_gradients<decltype(x), Axis>; }),
           Dtypes::floating, Layouts::channels_last_too);
  } else {
    add_op(device, op, name, plan, each_floating([](auto x) { return run_copies<decltype(x), Axis>; }),
           Dtypes::floating, Layouts::channels_last_too);
  }
}

}  // namespace

void add_pixels_kernels(TiledDevice& device) {
  add<MirroredAxis>(device, GPUNN_OP_REFLECT_PAD2D, "reflect_pad2d", plan_pad, false);
  add<MirroredAxis>(device, GPUNN_OP_REFLECT_PAD2D_BACKWARD, "reflect_pad2d_backward", plan_pad_backward, true);
  add<RepeatedAxis>(device, GPUNN_OP_UPSAMPLE2D, "upsample2d", plan_upsample, false);
  add<RepeatedAxis>(device, GPUNN_OP_UPSAMPLE2D_BACKWARD, "upsample2d_backward", plan_upsample_backward, true);
}

}  // namespace gpunn::cuda_tiled
