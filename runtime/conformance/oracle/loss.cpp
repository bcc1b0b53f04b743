#include <gpunn/ops.h>

#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

int64_t label_of(const OracleCall& call, const Values& labels, int64_t n, int64_t classes) {
  const auto label = static_cast<int64_t>(labels.at(at(n)));
  call.require(label >= 0 && label < classes, "a label in 0.." + std::to_string(classes - 1));
  return label;
}

namespace {

void nll_loss(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) {
    call.out()[at(n)] = -call.in(0)[at(n * classes + label_of(call, call.in(1), n, classes))];
  }
}

void nll_loss_backward(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.attrs<gpunn_classes_attrs>().classes;
  call.require(call.out_type().shape == Shape{rows, classes}, "dlogp[N,C]");
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call, call.in(1), n, classes);
    for (int64_t c = 0; c < classes; ++c) call.out()[at(n * classes + c)] = c == label ? -call.in(0)[at(n)] : 0;
  }
}

// Elements of one row of x[N,...].
int64_t row_size(const Shape& shape) {
  int64_t size = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) size *= shape[i];
  return size;
}

void mse_loss(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), size = row_size(call.in_type(0).shape);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double difference = call.in(0)[at(n * size + i)] - call.in(1)[at(n * size + i)];
      sum += difference * difference;
    }
    call.out()[at(n)] = sum / static_cast<double>(size);
  }
}

void mse_loss_backward(OracleCall& call) {
  const int64_t rows = call.in_dim(1, 0), size = row_size(call.in_type(1).shape);
  const Values& dloss = call.in(0);
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t i = 0; i < size; ++i) {
      const double difference = call.in(1)[at(n * size + i)] - call.in(2)[at(n * size + i)];
      call.out()[at(n * size + i)] = dloss[at(n)] * 2 * difference / static_cast<double>(size);
    }
  }
}

void softmax_cross_entropy(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  Values& loss = call.out(0);
  Values& logp = call.out(1);
  for (int64_t n = 0; n < rows; ++n) {
    log_softmax_row(call.in(0), logp, n, classes);
    loss[at(n)] = -logp[at(n * classes + label_of(call, call.in(1), n, classes))];
  }
}

void softmax_cross_entropy_backward(OracleCall& call) {
  const int64_t rows = call.in_dim(1, 0), classes = call.in_dim(1, 1);
  const Values& dloss = call.in(0);
  const Values& logp = call.in(1);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call, call.in(2), n, classes);
    for (int64_t c = 0; c < classes; ++c) {
      const double one_hot = c == label ? 1 : 0;
      call.out()[at(n * classes + c)] = dloss[at(n)] * (std::exp(logp[at(n * classes + c)]) - one_hot);
    }
  }
}

void soft_cross_entropy(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  const Values& target = call.in(1);
  Values& logp = call.out(1);
  for (int64_t n = 0; n < rows; ++n) {
    log_softmax_row(call.in(0), logp, n, classes);
    double sum = 0;
    for (int64_t i = n * classes; i < (n + 1) * classes; ++i) {
      if (target[at(i)] != 0) sum += target[at(i)] * logp[at(i)];  // 0 * -inf would be NaN
    }
    call.out(0)[at(n)] = -sum;
  }
}

void soft_cross_entropy_backward(OracleCall& call) {
  const int64_t rows = call.in_dim(1, 0), classes = call.in_dim(1, 1);
  const Values& dloss = call.in(0);
  const Values& logp = call.in(1);
  const Values& target = call.in(2);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t i = n * classes; i < (n + 1) * classes; ++i) sum += target[at(i)];
    for (int64_t i = n * classes; i < (n + 1) * classes; ++i) {
      call.out()[at(i)] = dloss[at(n)] * (std::exp(logp[at(i)]) * sum - target[at(i)]);
    }
  }
}

}  // namespace

std::vector<OracleEntry> loss_oracle() {
  return {{GPUNN_OP_NLL_LOSS, nll_loss},
          {GPUNN_OP_NLL_LOSS_BACKWARD, nll_loss_backward},
          {GPUNN_OP_MSE_LOSS, mse_loss},
          {GPUNN_OP_MSE_LOSS_BACKWARD, mse_loss_backward},
          {GPUNN_OP_SOFTMAX_CROSS_ENTROPY, softmax_cross_entropy},
          {GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, softmax_cross_entropy_backward},
          {GPUNN_OP_SOFT_CROSS_ENTROPY, soft_cross_entropy},
          {GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, soft_cross_entropy_backward}};
}

}  // namespace gpunn::conformance
