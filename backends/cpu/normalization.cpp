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

#include "add_op.hpp"
#include "common/normalization.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// At most this many parts, so that putting them together stays a small share of the work.
constexpr int64_t kMostNormParts = 64;

struct BatchNormPlan {
  BatchNorm shape{};  // channels-last: a row is a pixel
  int64_t rows_in_image = 1;
  int64_t rows_per_part = 1;
  int64_t parts = 0;
  const NormalizationKernels* kernels = nullptr;
  uint64_t workspace_bytes = 0;
};

// Numbers by channel: two f64 a part, then an f32 a part and three more.
struct Workspace {
  double* parts;
  float* coefficients;
  int64_t channels;

  double* first(int64_t part) const { return parts + 2 * part * channels; }
  double* second(int64_t part) const { return first(part) + channels; }
  float* coefficient(int64_t i) const { return coefficients + i * channels; }
  float* means(int64_t part) const { return coefficient(3 + part); }
};

Workspace workspace_of(const BatchNormPlan& plan, const OpArgs& args) {
  auto* parts = args.workspace<double>();
  return {.parts = parts,
          .coefficients = reinterpret_cast<float*>(parts + 2 * plan.parts * plan.shape.channels),
          .channels = plan.shape.channels};
}

BatchNormPlan make_plan(const BatchNorm& shape) {
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
  return plan;
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

void fill_zero(float* data, int64_t n) {
  if (n > 0) std::memset(data, 0, static_cast<std::size_t>(n) * sizeof(float));
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
void part_statistics(const BatchNormPlan& plan, const float* x, const ChannelShape& shape, float* means, double* mean,
                     double* squares) {
  std::fill(mean, mean + shape.channels, 0.0);
  std::fill(squares, squares + shape.channels, 0.0);
  plan.kernels->sum(x, mean, shape);
  const auto elements = static_cast<double>(shape.rows * shape.size);
  for (int64_t c = 0; c < shape.channels; ++c) {
    means[c] = static_cast<float>(mean[c] / elements);
    mean[c] = static_cast<double>(means[c]);
  }
  plan.kernels->squares(x, means, squares, shape);
}

void run_forward(const BatchNormPlan& plan, const OpArgs& args) {
  const BatchNorm& shape = plan.shape;
  const auto *x = args.in<float>(0), *gamma = args.in<float>(1), *beta = args.in<float>(2);
  auto *y = args.out<float>(0), *mean = args.out<float>(1), *rstd = args.out<float>(2);
  auto *running_mean = args.out<float>(3), *running_var = args.out<float>(4);
  const int64_t rows = counted_rows(plan, args);
  if (rows * shape.size == 0) {
    fill_zero(y, shape.elements());
    fill_zero(mean, shape.channels);
    fill_zero(rstd, shape.channels);
    return;
  }
  const Workspace to = workspace_of(plan, args);
  parallel_for(plan.parts, [&](int64_t part) {
    const ChannelShape counted = part_of(plan, part, rows);
    if (counted.rows == 0) return;
    part_statistics(plan, x + offset_of(plan, part), counted, to.means(part), to.first(part), to.second(part));
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
  parallel_for(plan.parts, [&](int64_t part) {
    const int64_t offset = offset_of(plan, part);
    plan.kernels->apply(x + offset, mean, factor, beta, y + offset, part_of(plan, part, shape.rows));
  });
}

void run_backward(const BatchNormPlan& plan, const OpArgs& args) {
  const BatchNorm& shape = plan.shape;
  const auto *dy = args.in<float>(0), *x = args.in<float>(1), *gamma = args.in<float>(2), *mean = args.in<float>(3),
             *rstd = args.in<float>(4);
  auto *dx = args.out<float>(0), *dgamma = args.out<float>(1), *dbeta = args.out<float>(2);
  const int64_t rows = counted_rows(plan, args);
  const Workspace to = workspace_of(plan, args);
  parallel_for(plan.parts, [&](int64_t part) {
    std::fill(to.first(part), to.first(part) + 2 * shape.channels, 0.0);
    const int64_t offset = offset_of(plan, part);
    plan.kernels->products(dy + offset, x + offset, mean, to.first(part), to.second(part), part_of(plan, part, rows));
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
  parallel_for(plan.parts, [&](int64_t part) {
    const int64_t begin = offset_of(plan, part);
    const ChannelShape counted = part_of(plan, part, rows);
    plan.kernels->backward(dy + begin, x + begin, mean, factor, offset, slope, dx + begin, counted);
    const int64_t row = shape.channels * shape.size;
    fill_zero(dx + begin + counted.rows * row, (part_of(plan, part, shape.rows).rows - counted.rows) * row);
  });
}

void run_inference(const BatchNormPlan& plan, const OpArgs& args) {
  const BatchNorm& shape = plan.shape;
  const auto *x = args.in<float>(0), *gamma = args.in<float>(1), *beta = args.in<float>(2), *mean = args.in<float>(3),
             *variance = args.in<float>(4);
  auto* y = args.out<float>(0);
  float* factor = workspace_of(plan, args).coefficient(0);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double inverse = 1.0 / std::sqrt(static_cast<double>(variance[c]) + static_cast<double>(shape.epsilon));
    factor[c] = static_cast<float>(inverse * static_cast<double>(gamma[c]));
  }
  parallel_for(plan.parts, [&](int64_t part) {
    const int64_t offset = offset_of(plan, part);
    plan.kernels->apply(x + offset, mean, factor, beta, y + offset, part_of(plan, part, shape.rows));
  });
}

BatchNormPlan plan_normalization(const OpDesc& desc) { return make_plan(batch_norm_of(desc)); }
BatchNormPlan plan_normalization_backward(const OpDesc& desc) { return make_plan(batch_norm_backward_of(desc)); }
BatchNormPlan plan_inference(const OpDesc& desc) { return make_plan(batch_norm_inference_of(desc)); }

}  // namespace

void add_normalization_kernels(plugin::Device& device) {
  constexpr Layouts kBoth = Layouts::channels_last_too;
  add_op(device, GPUNN_OP_BATCH_NORM, plan_normalization, run_forward, Dtypes::f32, kBoth);
  add_op(device, GPUNN_OP_BATCH_NORM_BACKWARD, plan_normalization_backward, run_backward, Dtypes::f32, kBoth);
  add_op(device, GPUNN_OP_BATCH_NORM_INFERENCE, plan_inference, run_inference, Dtypes::f32, kBoth);
}

}  // namespace gpunn::cpu
