// LOCAL_RESPONSE_NORM and its backward; a task some planes, each one channel of one image. The time is that of the
// powers, so the sums of squares are formed anew for each channel, without the rounding of a sum that slides.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "add_op.hpp"
#include "common/normalization.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// A power is worth tens of plain operations.
constexpr int64_t kPowerGrain = kGrain / 16;

// Calls body(channel, first element of the plane) for each plane.
template <class Body>
void for_planes(const LocalResponse& shape, const Body& body) {
  parallel_ranges(shape.rows * shape.channels, rows_per_task(shape.size, kPowerGrain), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane % shape.channels, plane * shape.size);
  });
}

float denominator(const LocalResponse& shape, const float* x, int64_t channel, int64_t element) {
  const int64_t first = std::max<int64_t>(channel - shape.before, 0);
  const int64_t last = std::min(channel + shape.behind, shape.channels - 1);
  float sum = 0.0F;
  for (int64_t c = first; c <= last; ++c) {
    const float value = x[element + (c - channel) * shape.size];
    sum += value * value;
  }
  return shape.k + shape.factor * sum;
}

void run_forward(const LocalResponse& shape, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  for_planes(shape, [&](int64_t channel, int64_t begin) {
    for (int64_t i = begin; i < begin + shape.size; ++i) {
      y[i] = x[i] * std::pow(denominator(shape, x, channel, i), -shape.beta);
    }
  });
}

// First what y[c] sends to dx[c] directly, and what it sends to all its neighbours; then each gathers from them.
void run_backward(const LocalResponse& shape, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *x = args.in<float>(1);
  auto *dx = args.out<float>(0), *sent = args.workspace<float>();
  for_planes(shape, [&](int64_t channel, int64_t begin) {
    for (int64_t i = begin; i < begin + shape.size; ++i) {
      const float s = denominator(shape, x, channel, i);
      dx[i] = dy[i] * std::pow(s, -shape.beta);
      sent[i] = dx[i] * x[i] / s;
    }
  });
  const float factor = 2.0F * shape.beta * shape.factor;
  for_planes(shape, [&](int64_t channel, int64_t begin) {
    const int64_t first = std::max<int64_t>(channel - shape.behind, 0);
    const int64_t last = std::min(channel + shape.before, shape.channels - 1);
    for (int64_t i = begin; i < begin + shape.size; ++i) {
      float sum = 0.0F;
      for (int64_t c = first; c <= last; ++c) sum += sent[i + (c - channel) * shape.size];
      dx[i] -= factor * x[i] * sum;
    }
  });
}

}  // namespace

void add_local_response_norm_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_LOCAL_RESPONSE_NORM, local_response_norm_of, run_forward);
  add_op(device, GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, local_response_norm_backward_of, run_backward);
}

}  // namespace gpunn::cpu
