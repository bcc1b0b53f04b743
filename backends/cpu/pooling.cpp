// MAX_POOL2D, AVG_POOL2D and their backwards. Packed images: maxima of 2x2 windows at stride 2 in simd/pooling.cpp, all
// others here, a task some planes. Channels-last images: vectors of channels, a task some channels of an image.
#include "simd/pooling.hpp"

#include <gpunn/kernel.hpp>

#include <type_traits>

#include "add_op.hpp"
#include "common/pooling.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

struct PoolPlan {
  Pool shape;
  bool simple = false;  // 2x2 at stride 2 without padding
  const PoolingKernels* kernels = nullptr;
};

PoolPlan make_plan(const Pool& shape) {
  const auto simple = [](const PoolAxis& axis) { return axis.window == 2 && axis.stride == 2 && axis.pad == 0; };
  return {.shape = shape,
          .simple = simple(shape.rows) && simple(shape.columns),
          .kernels = &GPUNN_SELECT_ISA(pooling_kernels)};
}

// f16, and gradients that several windows add to in bf16, are left to f32 with conversions around it: sums are f32.
Pool served(const OpDesc& desc, const Pool& pool, bool backward) {
  const int32_t dtype = desc.input(0).dtype;
  require(dtype != GPUNN_F16, "this kernel is of f32 and bf16 tensors");
  const auto apart = [](const PoolAxis& axis) { return axis.stride >= axis.window; };
  require(dtype == GPUNN_F32 || !backward || (apart(pool.rows) && apart(pool.columns)),
          "gradients of windows that overlap are summed in f32 only");
  return pool;
}

PoolPlan plan_pooling(const OpDesc& desc) { return make_plan(served(desc, max_pool_of(desc), false)); }
PoolPlan plan_pooling_backward(const OpDesc& desc) { return make_plan(served(desc, max_pool_backward_of(desc), true)); }
PoolPlan plan_average(const OpDesc& desc) { return make_plan(served(desc, avg_pool_of(desc), false)); }
PoolPlan plan_average_backward(const OpDesc& desc) { return make_plan(served(desc, avg_pool_backward_of(desc), true)); }

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
      float best = x[v.begin * width + h.begin];
      for (int64_t i = v.begin; i < v.end; ++i) {
        for (int64_t j = h.begin; j < h.end; ++j) {
          const float value = x[i * width + j];
          if (value > best || value != value) best = value;
        }
      }
      *y++ = T(best);
    }
  }
}

// The offset of the window's maximum; -1 where x does not hold y.
template <class T>
int64_t winner(int64_t width, const T* x, Span v, Span h, float y) {
  for (int64_t i = v.begin; i < v.end; ++i) {
    for (int64_t j = h.begin; j < h.end; ++j) {
      const float value = x[i * width + j];
      if (value == y || value != value) return i * width + j;
    }
  }
  return -1;
}

template <class T>
void pool_plane_backward(const Pool& pool, const T* dy, const T* x, const T* y, T* dx) {
  std::fill(dx, dx + pool.input_size(), T());
  for (int64_t p = 0; p < pool.rows.outputs; ++p) {
    const Span v = window_span(p, pool.rows);
    for (int64_t q = 0; q < pool.columns.outputs; ++q) {
      const int64_t output = p * pool.columns.outputs + q;
      const int64_t at = winner(pool.columns.inputs, x, v, window_span(q, pool.columns), y[output]);
      if (at >= 0) dx[at] = T(dx[at] + dy[output]);
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
  if (pool.channels_last) {
    const auto* images = args.in<T>(0);
    auto* pooled = args.out<T>(0);
    each_window(pool, [&](int64_t x, int64_t y, Span, Span, const PixelWindow& window, int64_t channels) {
      plan.kernels->pixels<T>().largest(images + x, window, channels, pooled + y);
    });
    return;
  }
  parallel_ranges(pool.planes, rows_per_task(pool.input_size()), [&](int64_t begin, int64_t end) {
    const auto* x = args.in<T>(0) + begin * pool.input_size();
    auto* y = args.out<T>(0) + begin * pool.output_size();
    if constexpr (std::is_same_v<T, float>) {
      if (plan.simple) {
        plan.kernels->forward(x, y, end - begin, pool.rows.inputs, pool.columns.inputs);
        return;
      }
    }
    for (int64_t plane = begin; plane < end; ++plane) {
      pool_plane(pool, x, y);
      x += pool.input_size();
      y += pool.output_size();
    }
  });
}

template <class T>
void run_maximum_backward(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  if (pool.channels_last) {
    const auto *dy = args.in<T>(0), *images = args.in<T>(1), *pooled = args.in<T>(2);
    auto* dx = args.out<T>(0);
    fill_images(pool, dx);
    each_window(pool, [&](int64_t x, int64_t y, Span, Span, const PixelWindow& window, int64_t channels) {
      plan.kernels->pixels<T>().to_largest(dy + y, images + x, pooled + y, window, channels, dx + x);
    });
    return;
  }
  parallel_ranges(pool.planes, rows_per_task(pool.input_size()), [&](int64_t begin, int64_t end) {
    const auto* dy = args.in<T>(0) + begin * pool.output_size();
    const auto* x = args.in<T>(1) + begin * pool.input_size();
    const auto* y = args.in<T>(2) + begin * pool.output_size();
    auto* dx = args.out<T>(0) + begin * pool.input_size();
    if constexpr (std::is_same_v<T, float>) {
      if (plan.simple) {
        plan.kernels->backward(dy, x, y, dx, end - begin, pool.rows.inputs, pool.columns.inputs);
        return;
      }
    }
    for (int64_t plane = begin; plane < end; ++plane) {
      pool_plane_backward(pool, dy, x, y, dx);
      dy += pool.output_size();
      x += pool.input_size();
      y += pool.output_size();
      dx += pool.input_size();
    }
  });
}

// What the sum of a window is divided by.
float divisor(const Pool& pool, Span v, Span h) {
  const int64_t count =
      pool.count_padding ? pool.rows.window * pool.columns.window : (v.end - v.begin) * (h.end - h.begin);
  return static_cast<float>(count);
}

template <class T>
float sum_of(const T* x, int64_t n) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

template <class T>
void average_plane(const Pool& pool, const T* x, T* y) {
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
      *y++ = T(sum / divisor(pool, v, h));
    }
  }
}

template <class T>
void average_plane_backward(const Pool& pool, const T* dy, T* dx) {
  const int64_t width = pool.columns.inputs;
  std::fill(dx, dx + pool.input_size(), T());
  for (int64_t p = 0; p < pool.rows.outputs; ++p) {
    const Span v = window_span(p, pool.rows);
    for (int64_t q = 0; q < pool.columns.outputs; ++q) {
      const Span h = window_span(q, pool.columns);
      const float share = static_cast<float>(*dy++) / divisor(pool, v, h);
      for (int64_t i = v.begin; i < v.end; ++i) {
        for (int64_t j = h.begin; j < h.end; ++j) dx[i * width + j] = T(dx[i * width + j] + share);
      }
    }
  }
}

template <class T>
void run_average(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  if (pool.channels_last) {
    const auto* images = args.in<T>(0);
    auto* pooled = args.out<T>(0);
    each_window(pool, [&](int64_t x, int64_t y, Span v, Span h, const PixelWindow& window, int64_t channels) {
      plan.kernels->pixels<T>().average(images + x, window, channels, divisor(pool, v, h), pooled + y);
    });
    return;
  }
  parallel_ranges(pool.planes, rows_per_task(pool.input_size()), [&](int64_t begin, int64_t end) {
    const auto* x = args.in<T>(0);
    auto* y = args.out<T>(0);
    for (int64_t plane = begin; plane < end; ++plane) {
      average_plane(pool, x + plane * pool.input_size(), y + plane * pool.output_size());
    }
  });
}

template <class T>
void run_average_backward(const PoolPlan& plan, const OpArgs& args) {
  const Pool& pool = plan.shape;
  if (pool.channels_last) {
    const auto* dy = args.in<T>(0);
    auto* dx = args.out<T>(0);
    fill_images(pool, dx);
    each_window(pool, [&](int64_t x, int64_t y, Span v, Span h, const PixelWindow& window, int64_t channels) {
      plan.kernels->pixels<T>().to_all(dy + y, window, channels, divisor(pool, v, h), dx + x);
    });
    return;
  }
  parallel_ranges(pool.planes, rows_per_task(pool.input_size()), [&](int64_t begin, int64_t end) {
    const auto* dy = args.in<T>(0);
    auto* dx = args.out<T>(0);
    for (int64_t plane = begin; plane < end; ++plane) {
      average_plane_backward(pool, dy + plane * pool.output_size(), dx + plane * pool.input_size());
    }
  });
}

// As each_floating, of f32 and bf16.
template <class Of>
auto each_pooled(Of of) {
  return [f32 = of(float()), bf16 = of(BFloat16())](const PoolPlan& plan, const OpArgs& args) {
    args.input(0).dtype == GPUNN_BF16 ? bf16(plan, args) : f32(plan, args);
  };
}

}  // namespace

void add_pooling_kernels(plugin::Device& device) {
  constexpr Layouts kBoth = Layouts::channels_last_too;
  serve(device, GPUNN_OP_MAX_POOL2D, plan_pooling, each_pooled([](auto x) { return run_maximum<decltype(x)>; }),
        Dtypes::floating, kBoth);
  serve(device, GPUNN_OP_MAX_POOL2D_BACKWARD, plan_pooling_backward,
        each_pooled([](auto x) { return run_maximum_backward<decltype(x)>; }), Dtypes::floating, kBoth);
  serve(device, GPUNN_OP_AVG_POOL2D, plan_average, each_pooled([](auto x) { return run_average<decltype(x)>; }),
        Dtypes::floating, kBoth);
  serve(device, GPUNN_OP_AVG_POOL2D_BACKWARD, plan_average_backward,
        each_pooled([](auto x) { return run_average_backward<decltype(x)>; }), Dtypes::floating, kBoth);
}

}  // namespace gpunn::cpu
