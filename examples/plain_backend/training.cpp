// Losses, batch norm, dropout and what is counted.
#include <gpunn/random.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plain.hpp"

namespace plain {
namespace {

// Whether the row's label names one of the classes. What is in device memory may be anything.
bool has_class(int32_t label, int64_t classes) { return label >= 0 && label < classes; }

void nll(const gpunn_no_attrs&, const OpArgs& args) {
  const int64_t classes = args.input(0).dim[1];
  for (int64_t row = 0; row < args.input(0).dim[0]; ++row) {
    const int32_t label = args.in<int32_t>(1)[row];
    args.out<float>(0)[row] =
        has_class(label, classes) ? -args.in<float>(0)[row * classes + label] : std::numeric_limits<float>::quiet_NaN();
  }
}

void nll_backward(const gpunn_classes_attrs& attrs, const OpArgs& args) {
  const int64_t classes = attrs.classes;
  std::fill_n(args.out<float>(0), elements(args.output(0)), 0.0F);
  for (int64_t row = 0; row < args.input(0).dim[0]; ++row) {
    const int32_t label = args.in<int32_t>(1)[row];
    if (has_class(label, classes)) args.out<float>(0)[row * classes + label] = -args.in<float>(0)[row];
  }
}

// How many of the rows count.
int64_t counted(const OpArgs& args, std::size_t input, int64_t rows) {
  return std::clamp<int64_t>(*args.in<int32_t>(input), 0, rows);
}

void mean_rows(const gpunn_no_attrs&, const OpArgs& args) {
  const int64_t count = counted(args, 1, args.input(0).dim[0]);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += args.in<float>(0)[i];
  *args.out<float>(0) = count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
}

void mean_rows_backward(const gpunn_rows_attrs& attrs, const OpArgs& args) {
  const int64_t count = counted(args, 1, attrs.rows);
  for (int64_t i = 0; i < attrs.rows; ++i) {
    args.out<float>(0)[i] = i < count ? *args.in<float>(0) / static_cast<float>(count) : 0.0F;
  }
}

// x[N,C,...], of which the first `count` of N enter a channel's statistics.
struct Batch {
  int64_t images, channels, inner, count;

  explicit Batch(const OpArgs& args) : images(args.input(0).dim[0]), channels(args.input(0).dim[1]), inner(1) {
    for (int32_t i = 2; i < args.input(0).rank; ++i) inner *= args.input(0).dim[i];
    count = args.inputs() > 5 ? counted(args, 5, images) : images;
  }
  // body(element) for channel c of the images from `first` to `last`.
  template <class Body>
  void each(int64_t c, int64_t first, int64_t last, const Body& body) const {
    for (int64_t n = first; n < last; ++n) {
      for (int64_t i = 0; i < inner; ++i) body((n * channels + c) * inner + i);
    }
  }
};

void batch_norm(const gpunn_batch_norm_attrs& attrs, const OpArgs& args) {
  const Batch batch(args);
  const auto *x = args.in<float>(0), *gamma = args.in<float>(1), *beta = args.in<float>(2);
  auto *y = args.out<float>(0), *running_mean = args.out<float>(3), *running_variance = args.out<float>(4);
  const auto terms = static_cast<double>(batch.count * batch.inner);
  for (int64_t c = 0; c < batch.channels; ++c) {
    args.out<float>(1)[c] = args.out<float>(2)[c] = 0.0F;
    if (terms == 0) {
      batch.each(c, 0, batch.images, [&](int64_t i) { y[i] = 0.0F; });
      continue;
    }
    double sum = 0, squares = 0;
    batch.each(c, 0, batch.count, [&](int64_t i) { sum += x[i]; });
    const double mean = sum / terms;
    batch.each(c, 0, batch.count, [&](int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
    const double rstd = 1 / std::sqrt(squares / terms + attrs.epsilon);
    batch.each(c, 0, batch.images,
               [&](int64_t i) { y[i] = static_cast<float>((x[i] - mean) * rstd * gamma[c] + beta[c]); });
    args.out<float>(1)[c] = static_cast<float>(mean);
    args.out<float>(2)[c] = static_cast<float>(rstd);
    const double share = attrs.momentum, variance = squares / std::max(1.0, terms - 1);
    running_mean[c] = static_cast<float>((1 - share) * running_mean[c] + share * mean);
    running_variance[c] = static_cast<float>((1 - share) * running_variance[c] + share * variance);
  }
}

void batch_norm_backward(const gpunn_no_attrs&, const OpArgs& args) {
  const Batch batch(args);
  const auto *dy = args.in<float>(0), *x = args.in<float>(1), *gamma = args.in<float>(2);
  auto* dx = args.out<float>(0);
  const auto terms = static_cast<double>(batch.count * batch.inner);
  for (int64_t c = 0; c < batch.channels; ++c) {
    const double mean = args.in<float>(3)[c], rstd = args.in<float>(4)[c];
    double dgamma = 0, dbeta = 0;
    batch.each(c, 0, batch.count, [&](int64_t i) {
      dbeta += dy[i];
      dgamma += dy[i] * (x[i] - mean) * rstd;
    });
    batch.each(c, 0, batch.count, [&](int64_t i) {
      const double h = (x[i] - mean) * rstd;
      dx[i] = static_cast<float>(gamma[c] * rstd * (dy[i] - dbeta / terms - h * dgamma / terms));
    });
    batch.each(c, batch.count, batch.images, [&](int64_t i) { dx[i] = 0.0F; });
    args.out<float>(1)[c] = static_cast<float>(dgamma);
    args.out<float>(2)[c] = static_cast<float>(dbeta);
  }
}

// How many classes come before the label; all of them where one is NaN.
int64_t rank_of(const float* x, int64_t classes, int32_t label) {
  int64_t rank = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (std::isnan(x[c])) return classes;
    if (x[c] > x[label] || (x[c] == x[label] && c < label)) ++rank;
  }
  return rank;
}

void accumulate_metrics(const gpunn_no_attrs&, const OpArgs& args) {
  const int64_t count = counted(args, 1, args.input(0).dim[0]);
  auto* totals = args.out<double>(0);
  for (int64_t row = 0; row < count; ++row) {
    totals[0] += args.in<float>(0)[row];
    if (args.inputs() < 5) continue;
    const int64_t classes = args.input(3).dim[1];
    const int32_t label = args.in<int32_t>(4)[row];
    if (!has_class(label, classes)) continue;
    const int64_t rank = rank_of(args.in<float>(3) + row * classes, classes, label);
    totals[1] += rank == 0 ? 1 : 0;
    totals[2] += rank < 5 ? 1 : 0;
  }
  totals[3] += static_cast<double>(count);
}

// The words are those of random.h, so that a mask has the same bits on every backend.
void dropout(const gpunn_dropout_attrs& attrs, const OpArgs& args) {
  const int64_t n = elements(args.input(0));
  const uint64_t first = gpunn_random_block(*args.in<int64_t>(1), n);
  for (int64_t i = 0; i < n; ++i) {
    const gpunn_random_words words = gpunn_philox(attrs.seed, attrs.stream, first + static_cast<uint64_t>(i / 4));
    const bool dropped = words.word[i % 4] >> 8 < gpunn_dropout_threshold(attrs.p);
    args.out<float>(0)[i] = dropped ? 0.0F : args.in<float>(0)[i] / (1.0F - attrs.p);
  }
}

}  // namespace

void add_training(Device& device) {
  serve(device, GPUNN_OP_NLL_LOSS, nll);
  serve(device, GPUNN_OP_NLL_LOSS_BACKWARD, nll_backward);
  serve(device, GPUNN_OP_MEAN_ROWS, mean_rows);
  serve(device, GPUNN_OP_MEAN_ROWS_BACKWARD, mean_rows_backward);
  serve(device, GPUNN_OP_BATCH_NORM, batch_norm);
  serve(device, GPUNN_OP_BATCH_NORM_BACKWARD, batch_norm_backward);
  serve(device, GPUNN_OP_METRICS_ACCUMULATE, accumulate_metrics);
  serve(device, GPUNN_OP_DROPOUT, dropout);
}

}  // namespace plain
