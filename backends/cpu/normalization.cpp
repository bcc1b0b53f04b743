// BATCH_NORM, BATCH_NORM_BACKWARD and BATCH_NORM_INFERENCE.
//
// Rows are taken in parts of a fixed number, each small enough for the cache where a row is: a part's mean and the
// squares of the differences from it are two passes over the part, of which memory sees one. The parts are then put
// together in f64, in their order (Chan, Golub and LeVeque, 1983). Neither the parts nor their order know of the
// threads.
#include "simd/normalization.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "add_op.hpp"
#include "common/normalization.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// At most this many parts, so that putting them together stays a small share of the work.
constexpr int64_t kMostNormParts = 64;
// Tensors of half precision are widened strip by strip; the strips of three tensors stay in the first-level cache,
// where a row is that short.
constexpr int64_t kNormStrip = 2048;
constexpr int64_t kNormTensors = 3;

struct BatchNormPlan {
  BatchNorm shape{};  // channels-last: a row is a pixel
  int64_t rows_in_image = 1;
  int64_t rows_per_part = 1;
  int64_t parts = 0;
  int64_t strip_rows = 1;
  bool half = false;
  int threads = 1;
  const NormalizationKernels* kernels = nullptr;
  uint64_t workspace_bytes = 0;

  int64_t row() const { return shape.channels * shape.size; }
};

// Numbers by channel: two f64 a part, then an f32 a part and three more. Behind them a thread's strips.
struct Workspace {
  double* parts;
  float* coefficients;
  int64_t channels;
  float* all_strips;
  int64_t strip_floats;  // of a thread

  double* first(int64_t part) const { return parts + 2 * part * channels; }
  double* second(int64_t part) const { return first(part) + channels; }
  float* coefficient(int64_t i) const { return coefficients + i * channels; }
  float* means(int64_t part) const { return coefficient(3 + part); }
  float* strips(int thread) const { return all_strips + thread * strip_floats; }
};

Workspace workspace_of(const BatchNormPlan& plan, const OpArgs& args) {
  auto* parts = args.workspace<double>();
  return {.parts = parts,
          .coefficients = reinterpret_cast<float*>(parts + 2 * plan.parts * plan.shape.channels),
          .channels = plan.shape.channels,
          .all_strips = reinterpret_cast<float*>(parts + 2 * plan.parts * plan.shape.channels) +
                        (3 + plan.parts) * plan.shape.channels,
          .strip_floats = kNormTensors * plan.strip_rows * plan.row()};
}

BatchNormPlan make_plan(const BatchNorm& shape, int32_t dtype) {
  BatchNormPlan plan;
  plan.shape = shape;
  if (shape.channels_last) {
    plan.rows_in_image = shape.size;
    plan.shape.rows *= shape.size;
    plan.shape.size = 1;
  }
  plan.rows_per_part =
      std::max(rows_per_task(shape.channels * plan.shape.size), divide_up(plan.shape.rows, kMostNormParts));
  plan.parts = (plan.shape.rows + plan.rows_per_part - 1) / plan.rows_per_part;
  plan.kernels = &GPUNN_SELECT_ISA(normalization_kernels);
  const auto channels = static_cast<uint64_t>(shape.channels);
  plan.workspace_bytes =
      channels * (static_cast<uint64_t>(plan.parts) * (2 * sizeof(double) + sizeof(float)) + 3 * sizeof(float));
  plan.half = dtype != GPUNN_F32;
  plan.threads = thread_count();
  plan.strip_rows = std::max<int64_t>(1, kNormStrip / std::max<int64_t>(1, plan.row()));
  if (plan.half) {
    plan.workspace_bytes +=
        static_cast<uint64_t>(plan.threads * kNormTensors * plan.strip_rows * plan.row()) * sizeof(float);
  }
  return plan;
}

// Calls body(first row, shape) for the strips of the rows: for all of them at once in f32.
template <class T, class Body>
void each_strip(const BatchNormPlan& plan, const ChannelShape& shape, const Body& body) {
  const int64_t at_once = std::is_same_v<T, float> ? shape.rows : plan.strip_rows;
  for (int64_t row = 0; row < shape.rows; row += at_once) {
    ChannelShape strip = shape;
    strip.rows = std::min(at_once, shape.rows - row);
    body(row * plan.row(), strip);
  }
}

// n numbers in f32: themselves, or a copy at `strip`.
template <class T>
const float* as_wide(const T* x, int64_t n, [[maybe_unused]] float* strip) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    widen(x, 1, strip, n);
    return strip;
  }
}

// Where numbers are made that go to y: there, or at `strip`, from where put_narrow takes them.
template <class T>
float* wide_target(T* y, [[maybe_unused]] float* strip) {
  if constexpr (std::is_same_v<T, float>) {
    return y;
  } else {
    return strip;
  }
}

template <class T>
void put_narrow([[maybe_unused]] const float* strip, [[maybe_unused]] T* y, [[maybe_unused]] int64_t n) {
  if constexpr (!std::is_same_v<T, float>) narrow(strip, y, n);
}

int64_t offset_of(const BatchNormPlan& plan, int64_t part) {
  return part * plan.rows_per_part * plan.shape.channels * plan.shape.size;
}

// Of the first `rows` rows, those of the part.
ChannelShape part_of(const BatchNormPlan& plan, int64_t part, int64_t rows) {
  return {.rows = std::clamp<int64_t>(rows - part * plan.rows_per_part, 0, plan.rows_per_part),
          .channels = plan.shape.channels,
          .size = plan.shape.size};
}

// How many rows enter the statistics.
int64_t counted_rows(const BatchNormPlan& plan, const OpArgs& args) {
  if (!plan.shape.counted) return plan.shape.rows;
  return std::clamp<int64_t>(*args.in<int32_t>(5) * plan.rows_in_image, 0, plan.shape.rows);
}

template <class T>
void fill_zero(T* data, int64_t n) {
  if (n > 0) std::memset(static_cast<void*>(data), 0, static_cast<std::size_t>(n) * sizeof(T));
}

struct Statistics {
  double mean = 0;
  double squares = 0;  // the sum of (x - mean)^2
};

Statistics put_together(const BatchNormPlan& plan, const Workspace& to, int64_t rows, int64_t channel) {
  const auto elements = [&](int64_t part) {
    return static_cast<double>(part_of(plan, part, rows).rows * plan.shape.size);
  };
  Statistics all;
  for (int64_t part = 0; part < plan.parts; ++part) {
    const double n = elements(part);
    if (n > 0) all.mean += n * to.first(part)[channel];
  }
  all.mean /= static_cast<double>(rows * plan.shape.size);
  for (int64_t part = 0; part < plan.parts; ++part) {
    const double n = elements(part), apart = to.first(part)[channel] - all.mean;
    if (n > 0) all.squares += to.second(part)[channel] + n * apart * apart;
  }
  return all;
}

// A part's means and squares. The mean is one that f32 holds, since the squares are of differences from that.
template <class T>
void part_statistics(const BatchNormPlan& plan, const T* x, const ChannelShape& shape, float* means, double* mean,
                     double* squares, float* strip) {
  std::fill(mean, mean + shape.channels, 0.0);
  std::fill(squares, squares + shape.channels, 0.0);
  each_strip<T>(plan, shape, [&](int64_t at, const ChannelShape& rows) {
    plan.kernels->sum(as_wide(x + at, rows.rows * plan.row(), strip), mean, rows);
  });
  const auto elements = static_cast<double>(shape.rows * shape.size);
  for (int64_t c = 0; c < shape.channels; ++c) {
    means[c] = static_cast<float>(mean[c] / elements);
    mean[c] = static_cast<double>(means[c]);
  }
  each_strip<T>(plan, shape, [&](int64_t at, const ChannelShape& rows) {
    plan.kernels->squares(as_wide(x + at, rows.rows * plan.row(), strip), means, squares, rows);
  });
}

// y = (x - mean) * factor + beta, of all rows.
template <class T>
void apply_all(const BatchNormPlan& plan, const Workspace& to, const T* x, const float* mean, const float* factor,
               const float* beta, T* y) {
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    float* strip = to.strips(thread);
    each_strip<T>(plan, part_of(plan, part, plan.shape.rows), [&](int64_t row, const ChannelShape& rows) {
      const int64_t at = offset_of(plan, part) + row;
      const int64_t n = rows.rows * plan.row();
      float* made = wide_target(y + at, strip);
      plan.kernels->apply(as_wide(x + at, n, strip), mean, factor, beta, made, rows);
      put_narrow(made, y + at, n);
    });
  });
}

template <class T>
void run_batch_norm(const BatchNormPlan& plan, const OpArgs& args) {
  const BatchNorm& shape = plan.shape;
  const auto* x = args.in<T>(0);
  const auto *gamma = args.in<float>(1), *beta = args.in<float>(2);
  auto* y = args.out<T>(0);
  auto *mean = args.out<float>(1), *rstd = args.out<float>(2);
  auto *running_mean = args.out<float>(3), *running_var = args.out<float>(4);
  const int64_t rows = counted_rows(plan, args);
  if (rows * shape.size == 0) {
    fill_zero(y, shape.elements());
    fill_zero(mean, shape.channels);
    fill_zero(rstd, shape.channels);
    return;
  }
  const Workspace to = workspace_of(plan, args);
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    const ChannelShape counted = part_of(plan, part, rows);
    if (counted.rows == 0) return;
    part_statistics(plan, x + offset_of(plan, part), counted, to.means(part), to.first(part), to.second(part),
                    to.strips(thread));
  });

  const auto elements = static_cast<double>(rows * shape.size);
  const auto momentum = static_cast<double>(shape.momentum);
  float* factor = to.coefficient(0);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const Statistics all = put_together(plan, to, rows, c);
    const double inverse = 1.0 / std::sqrt(all.squares / elements + static_cast<double>(shape.epsilon));
    mean[c] = static_cast<float>(all.mean);
    rstd[c] = static_cast<float>(inverse);
    factor[c] = static_cast<float>(inverse * static_cast<double>(gamma[c]));
    const auto run_on = [momentum](float& running, double batch) {
      running = static_cast<float>((1.0 - momentum) * static_cast<double>(running) + momentum * batch);
    };
    run_on(running_mean[c], all.mean);
    run_on(running_var[c], all.squares / std::max(elements - 1.0, 1.0));
  }
  apply_all(plan, to, x, mean, factor, beta, y);
}

template <class T>
void run_batch_norm_backward(const BatchNormPlan& plan, const OpArgs& args) {
  const BatchNorm& shape = plan.shape;
  const auto *dy = args.in<T>(0), *x = args.in<T>(1);
  const auto *gamma = args.in<float>(2), *mean = args.in<float>(3), *rstd = args.in<float>(4);
  auto* dx = args.out<T>(0);
  auto *dgamma = args.out<float>(1), *dbeta = args.out<float>(2);
  const int64_t strip = plan.strip_rows * plan.row();
  const int64_t rows = counted_rows(plan, args);
  const Workspace to = workspace_of(plan, args);
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    std::fill(to.first(part), to.first(part) + 2 * shape.channels, 0.0);
    each_strip<T>(plan, part_of(plan, part, rows), [&](int64_t row, const ChannelShape& rows_of) {
      const int64_t at = offset_of(plan, part) + row;
      const int64_t n = rows_of.rows * plan.row();
      float* strips = to.strips(thread);
      plan.kernels->products(as_wide(dy + at, n, strips), as_wide(x + at, n, strips + strip), mean, to.first(part),
                             to.second(part), rows_of);
    });
  });

  float *factor = to.coefficient(0), *offset = to.coefficient(1), *slope = to.coefficient(2);
  const auto elements = static_cast<double>(std::max<int64_t>(rows * shape.size, 1));
  for (int64_t c = 0; c < shape.channels; ++c) {
    double sum = 0, product = 0;
    for (int64_t part = 0; part < plan.parts; ++part) {
      sum += to.first(part)[c];
      product += to.second(part)[c];
    }
    const auto inverse = static_cast<double>(rstd[c]);
    dbeta[c] = static_cast<float>(sum);
    dgamma[c] = static_cast<float>(product * inverse);
    factor[c] = gamma[c] * rstd[c];
    offset[c] = static_cast<float>(sum / elements);
    slope[c] = static_cast<float>(product * inverse * inverse / elements);
  }
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    const int64_t begin = offset_of(plan, part);
    const ChannelShape counted = part_of(plan, part, rows);
    each_strip<T>(plan, counted, [&](int64_t from, const ChannelShape& rows_of) {
      const int64_t at = begin + from;
      const int64_t n = rows_of.rows * plan.row();
      float* strips = to.strips(thread);
      float* made = wide_target(dx + at, strips + 2 * strip);
      plan.kernels->backward(as_wide(dy + at, n, strips), as_wide(x + at, n, strips + strip), mean, factor, offset,
                             slope, made, rows_of);
      put_narrow(made, dx + at, n);
    });
    const int64_t row = plan.row();
    fill_zero(dx + begin + counted.rows * row, (part_of(plan, part, shape.rows).rows - counted.rows) * row);
  });
}

template <class T>
void run_batch_norm_inference(const BatchNormPlan& plan, const OpArgs& args) {
  const BatchNorm& shape = plan.shape;
  const auto *gamma = args.in<float>(1), *beta = args.in<float>(2), *mean = args.in<float>(3),
             *variance = args.in<float>(4);
  const Workspace to = workspace_of(plan, args);
  float* factor = to.coefficient(0);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double inverse = 1.0 / std::sqrt(static_cast<double>(variance[c]) + static_cast<double>(shape.epsilon));
    factor[c] = static_cast<float>(inverse * static_cast<double>(gamma[c]));
  }
  apply_all(plan, to, args.in<T>(0), mean, factor, beta, args.out<T>(0));
}

BatchNormPlan plan_normalization(const OpDesc& desc) { return make_plan(batch_norm_of(desc), desc.input(0).dtype); }
BatchNormPlan plan_normalization_backward(const OpDesc& desc) {
  return make_plan(batch_norm_backward_of(desc), desc.input(0).dtype);
}
BatchNormPlan plan_inference(const OpDesc& desc) {
  return make_plan(batch_norm_inference_of(desc), desc.input(0).dtype);
}

}  // namespace

void add_normalization_kernels(plugin::Device& device) {
  constexpr Layouts kBoth = Layouts::channels_last_too;
  serve(device, GPUNN_OP_BATCH_NORM, plan_normalization,
        each_floating([](auto x) { return run_batch_norm<decltype(x)>; }), Dtypes::floating, kBoth);
  serve(device, GPUNN_OP_BATCH_NORM_BACKWARD, plan_normalization_backward,
        each_floating([](auto x) { return run_batch_norm_backward<decltype(x)>; }), Dtypes::floating, kBoth);
  serve(device, GPUNN_OP_BATCH_NORM_INFERENCE, plan_inference,
        each_floating([](auto x) { return run_batch_norm_inference<decltype(x)>; }), Dtypes::floating, kBoth);
}

}  // namespace gpunn::cpu
