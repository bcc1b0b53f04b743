#include "norms/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "add_op.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {

// How many tensors have strips at a time.
constexpr int64_t kNormTensors = 3;

// Numbers by channel: two f64 a part, then an f32 a part and three more. Behind them a thread's strips, or the bits.
struct NormWorkspace {
  double* parts;
  float* coefficients;
  int64_t channels;
  float* all_strips;
  int64_t strip;

  NormWorkspace(const BatchNormPlan& plan, void* workspace)
      : parts(static_cast<double*>(workspace)),
        coefficients(reinterpret_cast<float*>(parts + 2 * plan.parts * plan.shape.channels)),
        channels(plan.shape.channels),
        all_strips(coefficients + (3 + plan.parts) * plan.shape.channels),
        strip(plan.strip.elements()) {}

  double* first(int64_t part) const { return parts + 2 * part * channels; }
  double* second(int64_t part) const { return first(part) + channels; }
  float* coefficient(int64_t i) const { return coefficients + i * channels; }
  float* means(int64_t part) const { return coefficient(3 + part); }
  uint16_t* bits() const { return reinterpret_cast<uint16_t*>(all_strips); }
  float* strip_of(int thread, int64_t i) const { return all_strips + (thread * kNormTensors + i) * strip; }
};

namespace {

// At most this many parts, so that putting them together stays a small share of the work.
constexpr int64_t kMostNormParts = 64;
// Tensors that the loops do not take as they are, and gradients of packed images through a ReLU, are made f32 strip by
// strip; the strips of all tensors stay in the first-level cache.
constexpr int64_t kNormStrip = 2048;
// Rows of a strip of [rows, channels] are a multiple of this, the rows whose terms the kernels sum in f32: so strips
// don't change the sums.
constexpr int64_t kNormStripRows = 8;

// Whether there are loops over rows of T.
template <class T>
constexpr bool kHasLoops = !std::is_same_v<T, Half>;

// Calls body(loops, x, first channel, shape) for all of the shape where the loops take T, otherwise for strips in f32.
template <class T, class Body>
void each_loop(const BatchNormPlan& plan, const ChannelShape& shape, const T* x, float* strip, const Body& body) {
  if constexpr (kHasLoops<T>) {
    if (plan.direct) return body(plan.kernels->of<T>(), x, 0, shape);
  }
  each_strip(shape, plan.strip, [&](int64_t at, int64_t c, const ChannelShape& rows) {
    body(plan.kernels->f32, as_wide(x + at, rows.elements(), strip), c, rows);
  });
}

template <class T>
void narrow_or_copy(const float* x, T* y, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    std::copy(x, x + n, y);
  } else {
    narrow(x, y, n);
  }
}

int64_t offset_of(const BatchNormPlan& plan, int64_t part) { return part * plan.rows_per_part * plan.row(); }

// Of the first `rows` rows, those of the part.
ChannelShape part_of(const BatchNormPlan& plan, int64_t part, int64_t rows) {
  return {.rows = std::clamp<int64_t>(rows - part * plan.rows_per_part, 0, plan.rows_per_part),
          .channels = plan.shape.channels,
          .size = plan.shape.size};
}

// How many rows enter the statistics.
int64_t counted_rows(const BatchNormPlan& plan, const int32_t* count) {
  if (count == nullptr) return plan.shape.rows;
  return std::clamp<int64_t>(*count * plan.rows_in_image, 0, plan.shape.rows);
}

template <class T>
void fill_zero(T* data, int64_t n) {
  if (n > 0) std::memset(static_cast<void*>(data), 0, static_cast<std::size_t>(n) * sizeof(T));
}

struct Statistics {
  double mean = 0;
  double squares = 0;  // the sum of (x - mean)^2
};

Statistics put_together(const BatchNormPlan& plan, const NormWorkspace& to, int64_t rows, int64_t channel) {
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
  each_loop(plan, shape, x, strip, [&](const auto& loops, const auto* from, int64_t c, const ChannelShape& rows) {
    loops.sum(from, mean + c, rows);
  });
  const auto elements = static_cast<double>(shape.rows * shape.size);
  for (int64_t c = 0; c < shape.channels; ++c) {
    means[c] = static_cast<float>(mean[c] / elements);
    mean[c] = static_cast<double>(means[c]);
  }
  each_loop(plan, shape, x, strip, [&](const auto& loops, const auto* from, int64_t c, const ChannelShape& rows) {
    loops.squares(from, means + c, squares + c, rows);
  });
}

// y = (x - mean) * factor + beta, plus `other` if that is not null, through ReLU, of all rows.
template <class T>
void apply_all(const BatchNormPlan& plan, const NormWorkspace& to, const T* x, const float* mean, const float* factor,
               const float* beta, const T* other, bool relu, T* y) {
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    const ChannelShape shape = part_of(plan, part, plan.shape.rows);
    const int64_t first = offset_of(plan, part);
    if constexpr (kHasLoops<T>) {
      const T* more = other == nullptr ? nullptr : other + first;
      if (plan.direct) {
        return plan.kernels->of<T>().apply(x + first, mean, factor, beta, more, relu, y + first, shape);
      }
    }
    each_strip(shape, plan.strip, [&](int64_t from, int64_t c, const ChannelShape& rows) {
      const int64_t at = first + from;
      const int64_t n = rows.elements();
      float* made = wide_target(y + at, to.strip_of(thread, 0));
      const float* more = other == nullptr ? nullptr : as_wide(other + at, n, to.strip_of(thread, 1));
      plan.kernels->f32.apply(as_wide(x + at, n, made), mean + c, factor + c, beta + c, more, relu, made, rows);
      put_narrow(made, y + at, n);
    });
  });
}

// Nothing enters the statistics: batch norm gives zeros.
template <class T>
void run_empty(const BatchNormPlan& plan, const BatchNormForward<T>& op) {
  const int64_t channels = plan.shape.channels;
  fill_zero(op.mean, channels);
  fill_zero(op.rstd, channels);
  if (op.other == nullptr) return fill_zero(op.y, plan.shape.elements());
  const NormWorkspace to(plan, op.workspace);
  float *zeros = to.coefficient(0), *ones = to.coefficient(1);
  std::fill(zeros, zeros + channels, 0.0F);
  std::fill(ones, ones + channels, 1.0F);
  apply_all<T>(plan, to, op.other, zeros, ones, zeros, nullptr, op.relu, op.y);
}

// The gradient of batch norm's result at `n` numbers from `at` on.
template <class T>
const float* gradient_at(const BatchNormBackward<T>& op, const BatchNormPlan& plan, const NormWorkspace& to, int thread,
                         int64_t at, int64_t n) {
  float* made = to.strip_of(thread, 0);
  const float* dy = as_wide(op.dy + at, n, made);
  if (op.relu_y == nullptr) return dy;
  const float* more = op.more_dy == nullptr ? nullptr : as_wide(op.more_dy + at, n, to.strip_of(thread, 1));
  plan.kernels->f32.masked(dy, more, as_wide(op.relu_y + at, n, to.strip_of(thread, 2)), made, n);
  return made;
}

}  // namespace

BatchNormPlan plan_batch_norm(const BatchNorm& shape, int32_t dtype, bool fused, int threads) {
  BatchNormPlan plan;
  plan.shape = shape;
  if (shape.channels_last) {
    plan.rows_in_image = shape.size;
    plan.shape.rows *= shape.size;
    plan.shape.size = 1;
  }
  plan.rows_per_part = std::max(rows_per_task(plan.row()), divide_up(plan.shape.rows, kMostNormParts));
  plan.parts = divide_up(plan.shape.rows, plan.rows_per_part);
  plan.kernels = &GPUNN_SELECT_ISA(normalization_kernels);
  plan.threads = threads;
  plan.strip = {.rows = std::max<int64_t>(1, kNormStrip / std::max<int64_t>(1, plan.row())),
                .channels = shape.channels,
                .size = plan.shape.size};
  if (plan.shape.size == 1) {
    plan.strip.rows = round_up(plan.strip.rows, kNormStripRows);
  } else if (plan.row() > kNormStrip) {
    plan.strip.channels = std::max<int64_t>(1, kNormStrip / plan.shape.size);
  }
  const auto channels = static_cast<uint64_t>(shape.channels);
  plan.workspace_bytes =
      channels * (static_cast<uint64_t>(plan.parts) * (2 * sizeof(double) + sizeof(float)) + 3 * sizeof(float));
  plan.direct = dtype == GPUNN_F32 || (dtype == GPUNN_BF16 && plan.shape.size == 1);
  plan.bits = fused && plan.direct && plan.shape.size == 1;
  if (plan.bits) {
    plan.workspace_bytes += static_cast<uint64_t>(plan.shape.rows * plan.vectors()) * sizeof(uint16_t);
  } else if (fused || !plan.direct) {
    plan.workspace_bytes += static_cast<uint64_t>(threads * kNormTensors * plan.strip.elements()) * sizeof(float);
  }
  return plan;
}

template <class T>
void run_batch_norm(const BatchNormPlan& plan, const BatchNormForward<T>& op) {
  const BatchNorm& shape = plan.shape;
  const int64_t rows = counted_rows(plan, op.count);
  if (rows * shape.size == 0) return run_empty(plan, op);
  const NormWorkspace to(plan, op.workspace);
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    const ChannelShape counted = part_of(plan, part, rows);
    if (counted.rows == 0) return;
    part_statistics(plan, op.x + offset_of(plan, part), counted, to.means(part), to.first(part), to.second(part),
                    to.strip_of(thread, 0));
  });

  const auto elements = static_cast<double>(rows * shape.size);
  const auto momentum = static_cast<double>(shape.momentum);
  float* factor = to.coefficient(0);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const Statistics all = put_together(plan, to, rows, c);
    const double inverse = 1.0 / std::sqrt(all.squares / elements + static_cast<double>(shape.epsilon));
    op.mean[c] = static_cast<float>(all.mean);
    op.rstd[c] = static_cast<float>(inverse);
    factor[c] = static_cast<float>(inverse * static_cast<double>(op.gamma[c]));
    const auto run_on = [momentum](float& running, double batch) {
      running = static_cast<float>((1.0 - momentum) * static_cast<double>(running) + momentum * batch);
    };
    run_on(op.running_mean[c], all.mean);
    run_on(op.running_var[c], all.squares / std::max(elements - 1.0, 1.0));
  }
  apply_all(plan, to, op.x, op.mean, factor, op.beta, op.other, op.relu, op.y);
}

namespace {

// dy and dx as matrices of rows, in one sweep a pass, where the mask is bits.
template <class T>
void masked_sums(const BatchNormPlan& plan, const BatchNormBackward<T>& op, const NormWorkspace& to, int64_t part,
                 const ChannelShape& counted) {
  const int64_t at = offset_of(plan, part);
  const NormalizationLoops<T>& loops = plan.kernels->of<T>();
  const MaskedRows<T> gradient{op.dy, op.more_dy};
  T* masked = op.masked == nullptr ? nullptr : op.masked + at;
  loops.masked_products(gradient.from(at), op.relu_y + at, masked,
                        to.bits() + part * plan.rows_per_part * plan.vectors(), op.x + at, op.mean, to.first(part),
                        to.second(part), counted);
  if (masked == nullptr) return;
  const int64_t done = counted.elements();
  const MaskedRows<T> rest = gradient.from(at + done);
  loops.masked(rest.dy, rest.more, op.relu_y + at + done, masked + done,
               part_of(plan, part, plan.shape.rows).elements() - done);
}

template <class T>
void masked_gradient(const BatchNormPlan& plan, const BatchNormBackward<T>& op, const NormWorkspace& to, int64_t part,
                     const ChannelShape& counted) {
  const int64_t at = offset_of(plan, part);
  const NormalizationLoops<T>& loops = plan.kernels->of<T>();
  const float *factor = to.coefficient(0), *offset = to.coefficient(1), *slope = to.coefficient(2);
  if (op.masked != nullptr) {
    loops.backward(op.masked + at, op.x + at, op.mean, factor, offset, slope, op.dx + at, counted);
  } else {
    loops.masked_backward(MaskedRows<T>{op.dy, op.more_dy}.from(at),
                          to.bits() + part * plan.rows_per_part * plan.vectors(), op.x + at, op.mean, factor, offset,
                          slope, op.dx + at, counted);
  }
}

// The same strip by strip, or all at once without ReLU where the loops take T.
template <class T>
void strip_sums(const BatchNormPlan& plan, const BatchNormBackward<T>& op, const NormWorkspace& to, int64_t part,
                const ChannelShape& counted, int thread) {
  const int64_t first = offset_of(plan, part);
  if constexpr (kHasLoops<T>) {
    if (plan.direct && op.relu_y == nullptr) {
      return plan.kernels->of<T>().products(op.dy + first, op.x + first, op.mean, to.first(part), to.second(part),
                                            counted);
    }
  }
  each_strip(counted, plan.strip, [&](int64_t from, int64_t c, const ChannelShape& strip) {
    const int64_t at = first + from;
    const int64_t n = strip.elements();
    const float* gradient = gradient_at(op, plan, to, thread, at, n);
    if (op.masked != nullptr) narrow_or_copy(gradient, op.masked + at, n);
    plan.kernels->f32.products(gradient, as_wide(op.x + at, n, to.strip_of(thread, 1)), op.mean + c, to.first(part) + c,
                               to.second(part) + c, strip);
  });
  if (op.masked == nullptr) return;
  ChannelShape rest = part_of(plan, part, plan.shape.rows);
  rest.rows -= counted.rows;
  each_strip(rest, plan.strip, [&](int64_t from, int64_t, const ChannelShape& strip) {
    const int64_t at = first + counted.rows * plan.row() + from;
    const int64_t n = strip.elements();
    narrow_or_copy(gradient_at(op, plan, to, thread, at, n), op.masked + at, n);
  });
}

template <class T>
void strip_gradient(const BatchNormPlan& plan, const BatchNormBackward<T>& op, const NormWorkspace& to, int64_t part,
                    const ChannelShape& counted, int thread) {
  const int64_t first = offset_of(plan, part);
  const float *factor = to.coefficient(0), *offset = to.coefficient(1), *slope = to.coefficient(2);
  if constexpr (kHasLoops<T>) {
    if (plan.direct && op.relu_y == nullptr) {
      return plan.kernels->of<T>().backward(op.dy + first, op.x + first, op.mean, factor, offset, slope, op.dx + first,
                                            counted);
    }
  }
  // What has been written is read, rather than made again.
  BatchNormBackward<T> second = op;
  if (op.masked != nullptr) second.dy = op.masked, second.relu_y = nullptr;
  each_strip(counted, plan.strip, [&](int64_t from, int64_t c, const ChannelShape& strip) {
    const int64_t at = first + from;
    const int64_t n = strip.elements();
    const float* gradient = gradient_at(second, plan, to, thread, at, n);
    float* made = wide_target(op.dx + at, to.strip_of(thread, 2));
    plan.kernels->f32.backward(gradient, as_wide(op.x + at, n, to.strip_of(thread, 1)), op.mean + c, factor + c,
                               offset + c, slope + c, made, strip);
    put_narrow(made, op.dx + at, n);
  });
}

}  // namespace

template <class T>
void run_batch_norm_backward(const BatchNormPlan& plan, const BatchNormBackward<T>& op) {
  const BatchNorm& shape = plan.shape;
  [[maybe_unused]] const bool bits = plan.bits && op.relu_y != nullptr;
  const int64_t rows = counted_rows(plan, op.count);
  const NormWorkspace to(plan, op.workspace);
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    std::fill(to.first(part), to.first(part) + 2 * shape.channels, 0.0);
    const ChannelShape counted = part_of(plan, part, rows);
    if constexpr (kHasLoops<T>) {
      if (bits) return masked_sums(plan, op, to, part, counted);
    }
    strip_sums(plan, op, to, part, counted, thread);
  });

  float *factor = to.coefficient(0), *offset = to.coefficient(1), *slope = to.coefficient(2);
  const auto elements = static_cast<double>(std::max<int64_t>(rows * shape.size, 1));
  for (int64_t c = 0; c < shape.channels; ++c) {
    double sum = 0, product = 0;
    for (int64_t part = 0; part < plan.parts; ++part) {
      sum += to.first(part)[c];
      product += to.second(part)[c];
    }
    const auto inverse = static_cast<double>(op.rstd[c]);
    op.dbeta[c] = static_cast<float>(sum);
    op.dgamma[c] = static_cast<float>(product * inverse);
    factor[c] = op.gamma[c] * op.rstd[c];
    offset[c] = static_cast<float>(sum / elements);
    slope[c] = static_cast<float>(product * inverse * inverse / elements);
  }
  parallel_for(plan.threads, plan.parts, [&](int64_t part, int thread) {
    const ChannelShape counted = part_of(plan, part, rows);
    const int64_t done = counted.elements();
    fill_zero(op.dx + offset_of(plan, part) + done, part_of(plan, part, shape.rows).elements() - done);
    if constexpr (kHasLoops<T>) {
      if (bits) return masked_gradient(plan, op, to, part, counted);
    }
    strip_gradient(plan, op, to, part, counted, thread);
  });
}

template <class T>
void run_batch_norm_inference(const BatchNormPlan& plan, const T* x, const float* gamma, const float* beta,
                              const float* mean, const float* variance, T* y, void* workspace) {
  const BatchNorm& shape = plan.shape;
  const NormWorkspace to(plan, workspace);
  float* factor = to.coefficient(0);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double inverse = 1.0 / std::sqrt(static_cast<double>(variance[c]) + static_cast<double>(shape.epsilon));
    factor[c] = static_cast<float>(inverse * static_cast<double>(gamma[c]));
  }
  apply_all<T>(plan, to, x, mean, factor, beta, nullptr, false, y);
}

template void run_batch_norm(const BatchNormPlan&, const BatchNormForward<float>&);
template void run_batch_norm(const BatchNormPlan&, const BatchNormForward<BFloat16>&);
template void run_batch_norm(const BatchNormPlan&, const BatchNormForward<Half>&);
template void run_batch_norm_backward(const BatchNormPlan&, const BatchNormBackward<float>&);
template void run_batch_norm_backward(const BatchNormPlan&, const BatchNormBackward<BFloat16>&);
template void run_batch_norm_backward(const BatchNormPlan&, const BatchNormBackward<Half>&);
template void run_batch_norm_inference(const BatchNormPlan&, const float*, const float*, const float*, const float*,
                                       const float*, float*, void*);
template void run_batch_norm_inference(const BatchNormPlan&, const BFloat16*, const float*, const float*, const float*,
                                       const float*, BFloat16*, void*);
template void run_batch_norm_inference(const BatchNormPlan&, const Half*, const float*, const float*, const float*,
                                       const float*, Half*, void*);

}  // namespace gpunn::cpu
