// BIAS_ADD, BIAS_BACKWARD and BIAS_ACTIVATION_BACKWARD.
//
// Sums over rows are taken in parts of a fixed number of rows, which are added in order: neither the parts nor their
// order know of the threads.
#include "simd/bias.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "add_op.hpp"
#include "common/bias.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// At most this many partial sums a channel, so that adding them stays a small share of the work.
constexpr int64_t kMostBiasParts = 64;

struct BiasPlan {
  ChannelShape shape{};
  int64_t rows_per_part = 0;
  int64_t parts = 0;
  bool relu = false;
  const BiasKernels* kernels = nullptr;
  uint64_t workspace_bytes = 0;
};

BiasPlan make_plan(const Bias& bias) {
  BiasPlan plan;
  plan.shape = {.rows = bias.rows, .channels = bias.channels, .size = bias.size};
  plan.relu = bias.relu;
  const int64_t row = plan.shape.channels * plan.shape.size;
  plan.rows_per_part = std::max(rows_per_task(row), (plan.shape.rows + kMostBiasParts - 1) / kMostBiasParts);
  plan.parts = (plan.shape.rows + plan.rows_per_part - 1) / plan.rows_per_part;
  plan.kernels = &GPUNN_SELECT_ISA(bias_kernels);
  return plan;
}

ChannelShape part_shape(const BiasPlan& plan, int64_t part) {
  ChannelShape shape = plan.shape;
  shape.rows = std::min(plan.rows_per_part, plan.shape.rows - part * plan.rows_per_part);
  return shape;
}

int64_t part_offset(const BiasPlan& plan, int64_t part) {
  return part * plan.rows_per_part * plan.shape.channels * plan.shape.size;
}

// What is computed at a time: all of `shape` in f32, in half precision kStretch elements at most.
template <class T>
ChannelShape largest_strip(const ChannelShape& shape) {
  if (std::is_same_v<T, float>) return shape;
  const int64_t size = std::clamp<int64_t>(shape.size, 1, kStretch);
  const int64_t channels = std::clamp<int64_t>(shape.channels, 1, kStretch / size);
  const bool whole_rows = size == shape.size && channels == shape.channels;
  return {.rows = whole_rows ? kStretch / (channels * size) : 1, .channels = channels, .size = size};
}

BiasPlan plan_bias_add(const OpDesc& desc) { return make_plan(bias_add_of(desc)); }

template <class T>
void run_bias_add(const BiasPlan& plan, const OpArgs& args) {
  const auto* bias = args.in<float>(1);
  parallel_for(plan.parts, [&](int64_t part) {
    const T* x = args.in<T>(0) + part_offset(plan, part);
    T* y = args.out<T>(0) + part_offset(plan, part);
    const ChannelShape shape = part_shape(plan, part);
    float wide[kStretch];
    each_strip(shape, largest_strip<T>(shape), [&](int64_t at, int64_t channel, const ChannelShape& strip) {
      float* const made = wide_target(y + at, wide);
      plan.kernels->add(as_wide(x + at, strip.elements(), wide), bias + channel, made, strip);
      put_narrow(made, y + at, strip.elements());
    });
  });
}

BiasPlan with_partial_sums(BiasPlan plan) {
  if (plan.parts > 1) {
    plan.workspace_bytes = static_cast<uint64_t>(plan.parts * plan.shape.channels) * sizeof(float);
  }
  return plan;
}

BiasPlan plan_bias_backward(const OpDesc& desc) { return with_partial_sums(make_plan(bias_backward_of(desc))); }

BiasPlan plan_activation_backward(const OpDesc& desc) {
  return with_partial_sums(make_plan(bias_activation_backward_of(desc)));
}

// db = the sum over the parts of body(part, sums of that part).
template <class Body>
void sum_parts(const BiasPlan& plan, const OpArgs& args, float* db, const Body& body) {
  const int64_t channels = plan.shape.channels;
  if (plan.parts == 0) {
    std::fill(db, db + channels, 0.0F);
    return;
  }
  auto* sums = plan.parts > 1 ? args.workspace<float>() : db;
  parallel_for(plan.parts, [&](int64_t part) { body(part, sums + part * channels); });
  if (plan.parts == 1) return;
  std::copy(sums, sums + channels, db);
  for (int64_t part = 1; part < plan.parts; ++part) {
    const float* more = sums + part * channels;
    for (int64_t c = 0; c < channels; ++c) db[c] += more[c];
  }
}

// sums = the sums of a part by channel, by body(offset, piece, sums of the piece).
template <class T, class Body>
void sum_pieces(const ChannelShape& part, float* sums, const Body& body) {
  if constexpr (std::is_same_v<T, float>) {
    body(int64_t{0}, part, sums);
  } else {
    std::fill(sums, sums + part.channels, 0.0F);
    each_strip(part, largest_strip<T>(part), [&](int64_t at, int64_t channel, const ChannelShape& strip) {
      float of_strip[kStretch];
      body(at, strip, of_strip);
      for (int64_t c = 0; c < strip.channels; ++c) sums[channel + c] += of_strip[c];
    });
  }
}

template <class T>
void run_bias_backward(const BiasPlan& plan, const OpArgs& args) {
  sum_parts(plan, args, args.out<float>(0), [&](int64_t part, float* sums) {
    const T* dy = args.in<T>(0) + part_offset(plan, part);
    float wide[kStretch];
    sum_pieces<T>(part_shape(plan, part), sums, [&](int64_t at, const ChannelShape& piece, float* of_piece) {
      plan.kernels->sum(as_wide(dy + at, piece.elements(), wide), of_piece, piece);
    });
  });
}

template <class T>
void run_activation_backward(const BiasPlan& plan, const OpArgs& args) {
  sum_parts(plan, args, args.out<float>(1), [&](int64_t part, float* sums) {
    const int64_t offset = part_offset(plan, part);
    const ChannelShape shape = part_shape(plan, part);
    const T *dy = args.in<T>(0) + offset, *y = args.in<T>(1) + offset;
    T* dx = args.out<T>(0) + offset;
    float wide[kStretch], wide_y[kStretch];
    sum_pieces<T>(shape, sums, [&](int64_t at, const ChannelShape& piece, float* of_piece) {
      const int64_t n = piece.elements();
      if (plan.relu) {
        float* const made = wide_target(dx + at, wide);
        plan.kernels->relu_backward(as_wide(dy + at, n, wide), as_wide(y + at, n, wide_y), made, of_piece, piece);
        put_narrow(made, dx + at, n);
      } else {
        plan.kernels->sum(as_wide(dy + at, n, wide), of_piece, piece);
      }
    });
    const auto bytes = static_cast<std::size_t>(shape.elements()) * sizeof(T);
    if (!plan.relu && dx != dy && bytes != 0) std::memcpy(static_cast<void*>(dx), dy, bytes);
  });
}

}  // namespace

void add_bias_kernels(plugin::Device& device) {
  const auto add = [&](int32_t op, BiasPlan (*plan)(const OpDesc&), auto run) {
    serve(device, op, plan, each_floating(run), Dtypes::floating, Layouts::channels_last_too);
  };
  add(GPUNN_OP_BIAS_ADD, plan_bias_add, [](auto x) { return run_bias_add<decltype(x)>; });
  add(GPUNN_OP_BIAS_BACKWARD, plan_bias_backward, [](auto x) { return run_bias_backward<decltype(x)>; });
  add(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, plan_activation_backward,
      [](auto x) { return run_activation_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
