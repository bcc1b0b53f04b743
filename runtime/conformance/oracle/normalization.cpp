#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// A tensor [N,C,...] as [images][channels][inner], of which the first `counted` images enter the statistics.
struct Batch {
  int64_t images, channels, inner, counted;

  double elements() const { return static_cast<double>(counted * inner); }  // of a channel's statistics
};

// `count` is the index of that input, which may be left out.
Batch batch_of(const OracleCall& call, std::size_t count) {
  Batch batch{call.in_dim(0, 0), call.in_dim(0, 1), 1, call.in_dim(0, 0)};
  for (std::size_t i = 2; i < call.in_type(0).shape.size(); ++i) batch.inner *= call.in_dim(0, i);
  if (count < call.inputs()) {
    batch.counted = std::clamp<int64_t>(static_cast<int64_t>(call.in(count).at(0)), 0, batch.images);
  }
  return batch;
}

// Calls visit(element) for channel c of the images [first, last).
template <class Visit>
void for_channel(const Batch& batch, int64_t c, int64_t first, int64_t last, Visit visit) {
  for (int64_t n = first; n < last; ++n) {
    for (int64_t i = 0; i < batch.inner; ++i) visit(at((n * batch.channels + c) * batch.inner + i));
  }
}

void batch_norm(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_batch_norm_attrs>();
  const double epsilon = attrs.epsilon, momentum = attrs.momentum;
  const Batch batch = batch_of(call, 5);
  const Values &x = call.in(0), &gamma = call.in(1), &beta = call.in(2);
  const double elements = batch.elements();
  for (int64_t channel = 0; channel < batch.channels; ++channel) {
    const std::size_t c = at(channel);
    call.out(3)[c] = call.in(3)[c];
    call.out(4)[c] = call.in(4)[c];
    call.out(1)[c] = 0;
    call.out(2)[c] = 0;
    if (elements == 0) {
      for_channel(batch, channel, 0, batch.images, [&](std::size_t i) { call.out(0)[i] = 0; });
      continue;
    }
    double sum = 0, squares = 0;
    for_channel(batch, channel, 0, batch.counted, [&](std::size_t i) { sum += x[i]; });
    const double mean = sum / elements;
    for_channel(batch, channel, 0, batch.counted, [&](std::size_t i) { squares += (x[i] - mean) * (x[i] - mean); });
    const double rstd = 1 / std::sqrt(squares / elements + epsilon);
    for_channel(batch, channel, 0, batch.images,
                [&](std::size_t i) { call.out(0)[i] = (x[i] - mean) * rstd * gamma[c] + beta[c]; });
    call.out(1)[c] = mean;
    call.out(2)[c] = rstd;
    const double variance = squares / (elements > 1 ? elements - 1 : 1);
    call.out(3)[c] = (1 - momentum) * call.in(3)[c] + momentum * mean;
    call.out(4)[c] = (1 - momentum) * call.in(4)[c] + momentum * variance;
  }
}

// Of y = (x - mean) rstd gamma + beta, where mean and rstd depend on x: with h = (x - mean) rstd and means
// over what counts, dx = gamma rstd (dy - mean(dy) - h mean(dy h)).
void batch_norm_backward(OracleCall& call) {
  const Batch batch = batch_of(call, 5);
  const Values &dy = call.in(0), &x = call.in(1), &gamma = call.in(2), &mean = call.in(3), &rstd = call.in(4);
  const double elements = batch.elements();
  for (int64_t channel = 0; channel < batch.channels; ++channel) {
    const std::size_t c = at(channel);
    double dgamma = 0, dbeta = 0;
    for_channel(batch, channel, 0, batch.counted, [&](std::size_t i) {
      dbeta += dy[i];
      dgamma += dy[i] * (x[i] - mean[c]) * rstd[c];
    });
    for_channel(batch, channel, 0, batch.counted, [&](std::size_t i) {
      const double h = (x[i] - mean[c]) * rstd[c];
      call.out(0)[i] = gamma[c] * rstd[c] * (dy[i] - dbeta / elements - h * dgamma / elements);
    });
    for_channel(batch, channel, batch.counted, batch.images, [&](std::size_t i) { call.out(0)[i] = 0; });
    call.out(1)[c] = dgamma;
    call.out(2)[c] = dbeta;
  }
}

void batch_norm_inference(OracleCall& call) {
  const double epsilon = call.attrs<gpunn_batch_norm_attrs>().epsilon;
  const Batch batch = batch_of(call, 5);
  const Values &x = call.in(0), &gamma = call.in(1), &beta = call.in(2), &mean = call.in(3), &variance = call.in(4);
  for (int64_t channel = 0; channel < batch.channels; ++channel) {
    const std::size_t c = at(channel);
    const double rstd = 1 / std::sqrt(variance[c] + epsilon);
    for_channel(batch, channel, 0, batch.images,
                [&](std::size_t i) { call.out(0)[i] = (x[i] - mean[c]) * rstd * gamma[c] + beta[c]; });
  }
}

}  // namespace

std::vector<OracleEntry> normalization_oracle() {
  return {{GPUNN_OP_BATCH_NORM, batch_norm},
          {GPUNN_OP_BATCH_NORM_BACKWARD, batch_norm_backward},
          {GPUNN_OP_BATCH_NORM_INFERENCE, batch_norm_inference}};
}

}  // namespace gpunn::conformance
