// MAX_POOL2D, AVG_POOL2D and their backwards, and QUANTIZED_MAX_POOL2D. Packed images: maxima of 2x2 windows at stride
// 2 in simd/images/pooling.cpp, all others here, a task some planes. Half precision is widened strip by strip.
// Channels-last images: vectors of channels, a task some channels of an image.
#include "simd/images/pooling.hpp"

#include <gpunn/kernel.hpp>

#include <array>
#include <cmath>
#include <type_traits>

#include "add_op.hpp"
#include "common/pooling.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// Elements of planes of half precision that are widened at once: with what belongs to them they stay in the first-level
// cache, where a plane is that small.
constexpr int64_t kPlaneStrip = 2048;

struct PoolPlan {
  Pool shape;
  bool simple = false;  // 2x2 at stride 2 without padding
  const PoolingKernels* kernels = nullptr;
  int threads = 1;
  int64_t strip_planes = 1;  // of packed images of half precision
  int64_t strip_floats = 0;  // of a thread
  uint64_t workspace_bytes = 0;
};

// Channels-last images of f16, and such gradients that several windows add to in bf16, are left to f32 with conversions
// around it: sums are f32.
PoolPlan make_plan(const OpDesc& desc, const Pool& shape, bool backward, int threads) {
  const int32_t dtype = desc.input(0).dtype;
  if (shape.channels_last) {
    require(dtype != GPUNN_F16, "this kernel is for f32 and bf16 tensors");
    const auto apart = [](const PoolAxis& axis) { return axis.stride >= axis.window; };
    require(dtype == GPUNN_F32 || !backward || (apart(shape.rows) && apart(shape.columns)),
            "gradients of windows that overlap are summed in f32 only");
  }
  const auto simple = [](const PoolAxis& axis) { return axis.window == 2 && axis.stride == 2 && axis.pad == 0; };
  PoolPlan plan{.shape = shape,
                .simple = simple(shape.rows) && simple(shape.columns),
                .kernels = &GPUNN_SELECT_ISA(pooling_kernels),
                .threads = threads};
  if (dtype != GPUNN_F32 && !shape.channels_last) {
    plan.strip_planes = rows_per_task(shape.input_size(), kPlaneStrip);
    plan.strip_floats = plan.strip_planes * 2 * (shape.input_size() + shape.output_size());
    plan.workspace_bytes = static_cast<uint64_t>(threads * plan.strip_floats) * sizeof(float);
  }
  return plan;
}

// Calls body(inputs, output, planes) for pieces of the planes of packed images, in f32. `sizes` are of a plane of each
// input, `size` of the output.
template <class T, std::size_t inputs, class Body>
void each_piece(const PoolPlan& plan, const OpArgs& args, const std::array<int64_t, inputs>& sizes, int64_t size,
                const Body& body) {
  const int64_t at_once = rows_per_task(plan.shape.input_size());
  parallel_for(plan.threads, divide_up(plan.shape.planes, at_once), [&](int64_t task, [[maybe_unused]] int thread) {
    const int64_t end = std::min(plan.shape.planes, (task + 1) * at_once);
    std::array<const float*, inputs> in{};
    if constexpr (std::is_same_v<T, float>) {
      const int64_t begin = task * at_once;
      for (std::size_t i = 0; i < inputs; ++i) in[i] = args.in<float>(i) + begin * sizes[i];
      body(in, args.out<float>(0) + begin * size, end - begin);
    } else {
      for (int64_t begin = task * at_once; begin < end; begin += plan.strip_planes) {
        const int64_t planes = std::min(plan.strip_planes, end - begin);
        float* strip = args.workspace<float>() + thread * plan.strip_floats;
        for (std::size_t i = 0; i < inputs; ++i) {
          widen(args.in<T>(i) + begin * sizes[i], 1, strip, planes * sizes[i]);
          in[i] = strip;
          strip += planes * sizes[i];
        }
        body(in, strip, planes);
        narrow(strip, args.out<T>(0) + begin * size, planes * size);
      }
    }
  });
}

// The part of a window inside the image, along one axis.
struct Span {
  int64_t begin;
  int64_t end;
};

Span window_span(int64_t output, const PoolAxis& axis) {
  const int64_t start = output * axis.stride - axis.pad;
  return {std::max<int64_t>(start, 0), std::min(start + axis.window, axis.inputs)};
}

template <class T>
void pool_plane(const Pool& pool, const T* x, T* y) {
  const int64_t width = pool.columns.inputs;
  for (int64_t p = 0; p < pool.rows.outputs; ++p) {
    const Span v = window_span(p, pool.rows);
    for (int64_t q = 0; q < pool.columns.outputs; ++q) {
      const Span h = window_span(q, pool.columns);
      T best = x[v.begin * width + h.begin];
      for (int64_t i = v.begin; i < v.end; ++i) {
        for (int64_t j = h.begin; j < h.end; ++j) {
          const T value = x[i * width + j];
          bool wins = value > best;
          if constexpr (std::is_floating_point_v<T>) wins = wins || std::isnan(value);
          if (wins) best = value;
        }
      }
      *y++ = best;
    }
  }
}

// The offset of the window's maximum; -1 where x does not hold y.
int64_t winner(int64_t width, const float* x, Span v, Span h, float y) {
  for (int64_t i = v.begin; i < v.end; ++i) {
    for (int64_t j = h.begin; j < h.end; ++j) {
      const float value = x[i * width + j];
      if (value == y || value != value) return i * width + j;
    }
  }
  return -1;
}

void pool_plane_backward(const Pool& pool, const float* dy, const float* x, const float* y, float* dx) {
  std::fill(dx, dx + pool.input_size(), 0.0F);
  for (int64_t p = 0; p < pool.rows.outputs; ++p) {
    const Span v = window_span(p, pool.rows);
    for (int64_t q = 0; q < pool.columns.outputs; ++q) {
      const int64_t output = p * pool.columns.outputs + q;
      const int64_t at = winner(pool.columns.inputs, x, v, window_span(q, pool.columns), y[output]);
      if (at >= 0) dx[at] += dy[output];
    }
  }
}

// A task has whole vectors of channels, and of them so many that neighbouring tasks rarely share a line of memory.
constexpr int64_t kChannelsInTask = 64;

// Calls body(pixel offset in x, pixel offset in y, v, h, window, first channel, channels) for each output pixel.
template <class Body>
void each_window(const Pool& pool, const Body& body) {
  const int64_t channels = pool.channels;
  const int64_t parts = divide_up(channels, kChannelsInTask);
  const int64_t images = channels == 0 ? 0 : pool.planes / channels;
  parallel_for(images * parts, [&](int64_t task) {
    const int64_t image = task / parts;
    const int64_t first = task % parts * kChannelsInTask;
    for (int64_t p = 0; p < pool.rows.outputs; ++p) {
      const Span v = window_span(p, pool.rows);
      for (int64_t q = 0; q < pool.columns.outputs; ++q) {
        const Span h = window_span(q, pool.columns);
        const PixelWindow window{.rows = v.end - v.begin,
                                 .columns = h.end - h.begin,
                                 .row = pool.columns.inputs * channels,
                                 .pixel = channels};
        const int64_t x = image * pool.input_size() + v.begin * pool.columns.inputs + h.begin;
        const int64_t y = image * pool.output_size() + p * pool.columns.outputs + q;
        body(x * channels + first, y * channels + first, v, h, window, std::min(kChannelsInTask, channels - first));
      }
    }
  });
}

template <class T>
void fill_images(const Pool& pool, T* dx) {
  parallel_ranges(pool.planes, rows_per_task(pool.input_size()), [&](int64_t begin, int64_t end) {
    std::fill(dx + begin * pool.input_size(), dx + end * pool.input_size(), T());
  });
}

template <class T>
void run_maximum(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  if constexpr (!std::is_same_v<T, Half>) {
    if (pool.channels_last) {
      const auto* images = args.in<T>(0);
      auto* pooled = args.out<T>(0);
      each_window(pool, [&](int64_t x, int64_t y, Span, Span, const PixelWindow& window, int64_t channels) {
        plan.kernels->pixels<T>().largest(images + x, window, channels, pooled + y);
      });
      return;
    }
  }
  const int64_t input = pool.input_size(), output = pool.output_size();
  each_piece<T, 1>(plan, args, {input}, output, [&](const auto& in, float* y, int64_t planes) {
    if (plan.simple) {
      plan.kernels->forward(in[0], y, planes, pool.rows.inputs, pool.columns.inputs);
      return;
    }
    for (int64_t i = 0; i < planes; ++i) pool_plane(pool, in[0] + i * input, y + i * output);
  });
}

void run_byte_maximum(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  const auto* x = args.in<uint8_t>(0);
  auto* y = args.out<uint8_t>(0);
  if (pool.channels_last) {
    each_window(pool, [&](int64_t from, int64_t to, Span, Span, const PixelWindow& window, int64_t channels) {
      plan.kernels->largest_byte(x + from, window, channels, y + to);
    });
    return;
  }
  const int64_t input = pool.input_size(), output = pool.output_size();
  parallel_ranges(pool.planes, rows_per_task(input), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pool_plane(pool, x + i * input, y + i * output);
  });
}

template <class T>
void run_maximum_backward(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  if constexpr (!std::is_same_v<T, Half>) {
    if (pool.channels_last) {
      const auto *dy = args.in<T>(0), *images = args.in<T>(1), *pooled = args.in<T>(2);
      auto* dx = args.out<T>(0);
      fill_images(pool, dx);
      each_window(pool, [&](int64_t x, int64_t y, Span, Span, const PixelWindow& window, int64_t channels) {
        plan.kernels->pixels<T>().to_largest(dy + y, images + x, pooled + y, window, channels, dx + x);
      });
      return;
    }
  }
  const int64_t input = pool.input_size(), output = pool.output_size();
  each_piece<T, 3>(plan, args, {output, input, output}, input, [&](const auto& in, float* dx, int64_t planes) {
    const auto [dy, x, y] = in;
    if (plan.simple) {
      plan.kernels->backward(dy, x, y, dx, planes, pool.rows.inputs, pool.columns.inputs);
      return;
    }
    for (int64_t i = 0; i < planes; ++i) {
      pool_plane_backward(pool, dy + i * output, x + i * input, y + i * output, dx + i * input);
    }
  });
}

// What the sum of a window is divided by.
float divisor(const Pool& pool, Span v, Span h) {
  const int64_t count =
      pool.count_padding ? pool.rows.window * pool.columns.window : (v.end - v.begin) * (h.end - h.begin);
  return static_cast<float>(count);
}

float sum_of(const float* x, int64_t n) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

void average_plane(const Pool& pool, const float* x, float* y) {
  const int64_t width = pool.columns.inputs;
  for (int64_t p = 0; p < pool.rows.outputs; ++p) {
    const Span v = window_span(p, pool.rows);
    for (int64_t q = 0; q < pool.columns.outputs; ++q) {
      const Span h = window_span(q, pool.columns);
      float sum = 0.0F;
      if (h.end - h.begin == width) {  // whole rows, which lie one behind the other
        sum = sum_of(x + v.begin * width, (v.end - v.begin) * width);
      } else {
        for (int64_t i = v.begin; i < v.end; ++i) {
          for (int64_t j = h.begin; j < h.end; ++j) sum += x[i * width + j];
        }
      }
      *y++ = sum / divisor(pool, v, h);
    }
  }
}

void average_plane_backward(const Pool& pool, const float* dy, float* dx) {
  const int64_t width = pool.columns.inputs;
  std::fill(dx, dx + pool.input_size(), 0.0F);
  for (int64_t p = 0; p < pool.rows.outputs; ++p) {
    const Span v = window_span(p, pool.rows);
    for (int64_t q = 0; q < pool.columns.outputs; ++q) {
      const Span h = window_span(q, pool.columns);
      const float share = *dy++ / divisor(pool, v, h);
      for (int64_t i = v.begin; i < v.end; ++i) {
        for (int64_t j = h.begin; j < h.end; ++j) dx[i * width + j] += share;
      }
    }
  }
}

template <class T>
void run_average(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  if constexpr (!std::is_same_v<T, Half>) {
    if (pool.channels_last) {
      const auto* images = args.in<T>(0);
      auto* pooled = args.out<T>(0);
      each_window(pool, [&](int64_t x, int64_t y, Span v, Span h, const PixelWindow& window, int64_t channels) {
        plan.kernels->pixels<T>().average(images + x, window, channels, divisor(pool, v, h), pooled + y);
      });
      return;
    }
  }
  const int64_t input = pool.input_size(), output = pool.output_size();
  each_piece<T, 1>(plan, args, {input}, output, [&](const auto& in, float* y, int64_t planes) {
    for (int64_t i = 0; i < planes; ++i) average_plane(pool, in[0] + i * input, y + i * output);
  });
}

template <class T>
void run_average_backward(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  if constexpr (!std::is_same_v<T, Half>) {
    if (pool.channels_last) {
      const auto* dy = args.in<T>(0);
      auto* dx = args.out<T>(0);
      fill_images(pool, dx);
      each_window(pool, [&](int64_t x, int64_t y, Span v, Span h, const PixelWindow& window, int64_t channels) {
        plan.kernels->pixels<T>().to_all(dy + y, window, channels, divisor(pool, v, h), dx + x);
      });
      return;
    }
  }
  const int64_t input = pool.input_size(), output = pool.output_size();
  each_piece<T, 1>(plan, args, {output}, input, [&](const auto& in, float* dx, int64_t planes) {
    for (int64_t i = 0; i < planes; ++i) average_plane_backward(pool, in[0] + i * output, dx + i * input);
  });
}

}  // namespace

void add_pooling_kernels(plugin::Device& device) {
  const int threads = thread_count();
  const auto add = [&](int32_t op, Pool (*shape_of)(const OpDesc&), bool backward, auto run) {
    serve(
        device, op,
        [shape_of, backward, threads](const OpDesc& desc) {
          return make_plan(desc, shape_of(desc), backward, threads);
        },
        each_floating(run), Dtypes::floating, Layouts::channels_last_too);
  };
  add(GPUNN_OP_MAX_POOL2D, max_pool_of, false, [](auto x) { return run_maximum<decltype(x)>; });
  serve(
      device, GPUNN_OP_QUANTIZED_MAX_POOL2D,
      [threads](const OpDesc& desc) {
        return PoolPlan{.shape = max_pool_of(desc), .kernels = &GPUNN_SELECT_ISA(pooling_kernels), .threads = threads};
      },
      run_byte_maximum, Dtypes::f32, Layouts::channels_last_too);
  add(GPUNN_OP_MAX_POOL2D_BACKWARD, max_pool_backward_of, true,
      [](auto x) { return run_maximum_backward<decltype(x)>; });
  add(GPUNN_OP_AVG_POOL2D, avg_pool_of, false, [](auto x) { return run_average<decltype(x)>; });
  add(GPUNN_OP_AVG_POOL2D_BACKWARD, avg_pool_backward_of, true,
      [](auto x) { return run_average_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
