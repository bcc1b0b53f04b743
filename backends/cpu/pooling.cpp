// MAX_POOL2D and its backward: 2x2 windows at stride 2 in simd/pooling.cpp, all others here, a task some planes.
#include "simd/pooling.hpp"

#include <gpunn/plugin.hpp>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

struct PoolPlan {
  gpunn_pool2d_attrs pool{};
  int64_t planes = 0;
  int64_t height = 0, width = 0;
  int64_t rows = 0, columns = 0;  // of the output
  bool simple = false;            // 2x2 at stride 2 without padding
  const PoolingKernels* kernels = nullptr;

  int64_t input_size() const { return height * width; }
  int64_t output_size() const { return rows * columns; }
};

int64_t output_dim(int64_t size, int32_t window, int32_t stride, int32_t pad) {
  const int64_t room = size + 2 * int64_t{pad} - window;
  require(room >= 0, "the window is larger than the padded image");
  // With at most half a window of padding, each window holds an element.
  return room / stride + 1;
}

PoolPlan plan_pool(const OpDesc& desc, const gpunn_tensor& x, const gpunn_tensor& y) {
  const auto attrs = require_attrs<gpunn_pool2d_attrs>(desc);
  require_packed(x, GPUNN_F32, "x");
  require_packed(y, GPUNN_F32, "y");
  require(x.rank == 4, "x must be [N,C,H,W]");
  for (int i = 0; i < 2; ++i) {
    require(attrs.window[i] >= 1, "the window must be at least 1");
    require(attrs.stride[i] >= 1, "the stride must be at least 1");
    require(attrs.pad[i] >= 0 && attrs.pad[i] <= attrs.window[i] / 2, "the padding must be 0 to half the window");
  }
  require(x.dim[2] >= 1 && x.dim[3] >= 1, "the image must not be empty");
  PoolPlan plan;
  plan.pool = attrs;
  plan.planes = x.dim[0] * x.dim[1];
  plan.height = x.dim[2];
  plan.width = x.dim[3];
  plan.rows = output_dim(plan.height, attrs.window[0], attrs.stride[0], attrs.pad[0]);
  plan.columns = output_dim(plan.width, attrs.window[1], attrs.stride[1], attrs.pad[1]);
  require_shape(y, {x.dim[0], x.dim[1], plan.rows, plan.columns}, "y");
  plan.simple = true;
  for (int i = 0; i < 2; ++i) {
    plan.simple = plan.simple && attrs.window[i] == 2 && attrs.stride[i] == 2 && attrs.pad[i] == 0;
  }
  plan.kernels = &GPUNN_SELECT_ISA(pooling_kernels);
  return plan;
}

PoolPlan plan_forward(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  return plan_pool(desc, desc.input(0), desc.output(0));
}

PoolPlan plan_backward(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.input(0), GPUNN_F32, "dy");
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_same_shape(desc.input(0), desc.input(2), "dy and y");
  require_same_shape(desc.output(0), desc.input(1), "dx and x");
  return plan_pool(desc, desc.input(1), desc.input(2));
}

// The part of a window inside the image, along one axis.
struct Span {
  int64_t begin;
  int64_t end;
};

Span window_span(int64_t output, int axis, const gpunn_pool2d_attrs& pool, int64_t size) {
  const int64_t start = output * pool.stride[axis] - pool.pad[axis];
  return {std::max<int64_t>(start, 0), std::min(start + pool.window[axis], size)};
}

void pool_plane(const PoolPlan& plan, const float* x, float* y) {
  for (int64_t p = 0; p < plan.rows; ++p) {
    const Span v = window_span(p, 0, plan.pool, plan.height);
    for (int64_t q = 0; q < plan.columns; ++q) {
      const Span h = window_span(q, 1, plan.pool, plan.width);
      float best = x[v.begin * plan.width + h.begin];
      for (int64_t i = v.begin; i < v.end; ++i) {
        for (int64_t j = h.begin; j < h.end; ++j) {
          const float value = x[i * plan.width + j];
          if (value > best || value != value) best = value;
        }
      }
      *y++ = best;
    }
  }
}

// The offset of the window's maximum; -1 where x does not hold y.
int64_t winner(const PoolPlan& plan, const float* x, Span v, Span h, float y) {
  for (int64_t i = v.begin; i < v.end; ++i) {
    for (int64_t j = h.begin; j < h.end; ++j) {
      const float value = x[i * plan.width + j];
      if (value == y || value != value) return i * plan.width + j;
    }
  }
  return -1;
}

void pool_plane_backward(const PoolPlan& plan, const float* dy, const float* x, const float* y, float* dx) {
  std::fill(dx, dx + plan.input_size(), 0.0F);
  for (int64_t p = 0; p < plan.rows; ++p) {
    const Span v = window_span(p, 0, plan.pool, plan.height);
    for (int64_t q = 0; q < plan.columns; ++q) {
      const int64_t output = p * plan.columns + q;
      const int64_t at = winner(plan, x, v, window_span(q, 1, plan.pool, plan.width), y[output]);
      if (at >= 0) dx[at] += dy[output];
    }
  }
}

void run_forward(const PoolPlan& plan, const OpArgs& args) {
  parallel_ranges(plan.planes, rows_per_task(plan.input_size()), [&](int64_t begin, int64_t end) {
    const auto* x = args.in<float>(0) + begin * plan.input_size();
    auto* y = args.out<float>(0) + begin * plan.output_size();
    if (plan.simple) {
      plan.kernels->forward(x, y, end - begin, plan.height, plan.width);
      return;
    }
    for (int64_t plane = begin; plane < end; ++plane) {
      pool_plane(plan, x, y);
      x += plan.input_size();
      y += plan.output_size();
    }
  });
}

void run_backward(const PoolPlan& plan, const OpArgs& args) {
  parallel_ranges(plan.planes, rows_per_task(plan.input_size()), [&](int64_t begin, int64_t end) {
    const auto* dy = args.in<float>(0) + begin * plan.output_size();
    const auto* x = args.in<float>(1) + begin * plan.input_size();
    const auto* y = args.in<float>(2) + begin * plan.output_size();
    auto* dx = args.out<float>(0) + begin * plan.input_size();
    if (plan.simple) {
      plan.kernels->backward(dy, x, y, dx, end - begin, plan.height, plan.width);
      return;
    }
    for (int64_t plane = begin; plane < end; ++plane) {
      pool_plane_backward(plan, dy, x, y, dx);
      dy += plan.output_size();
      x += plan.input_size();
      y += plan.output_size();
      dx += plan.input_size();
    }
  });
}

}  // namespace

void add_pooling_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_MAX_POOL2D, plan_forward, run_forward);
  add_op(device, GPUNN_OP_MAX_POOL2D_BACKWARD, plan_backward, run_backward);
}

}  // namespace gpunn::cpu
