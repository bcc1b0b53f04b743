#include <gpunn/ops.h>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// y[m,n] = activation(sum over k of op(a)[m,k] op(b)[k,n] + bias[n]); bias may be nullptr.
void multiply(OracleCall& call, bool transpose_a, bool transpose_b, const Values* bias, int32_t activation) {
  const Values& a = call.in(0);
  const Values& b = call.in(1);
  const int64_t rows = call.in_dim(0, transpose_a ? 1 : 0);
  const int64_t inner = call.in_dim(0, transpose_a ? 0 : 1);
  const int64_t columns = call.in_dim(1, transpose_b ? 0 : 1);
  call.require(call.in_dim(1, transpose_b ? 1 : 0) == inner, "the same inner dimension in a and b");
  call.require(call.out_type().shape == Shape{rows, columns}, "y[M,N]");
  call.require(bias == nullptr || static_cast<int64_t>(bias->size()) == columns, "bias[N]");

  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        const double left = transpose_a ? a[at(k * rows + m)] : a[at(m * inner + k)];
        const double right = transpose_b ? b[at(n * inner + k)] : b[at(k * columns + n)];
        sum += left * right;
      }
      if (bias != nullptr) sum += (*bias)[at(n)];
      call.out()[at(m * columns + n)] = activate(activation, sum);
    }
  }
}

void matmul(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_matmul_attrs>();
  multiply(call, attrs.transpose_a != 0, attrs.transpose_b != 0, nullptr, GPUNN_ACTIVATION_NONE);
}

void batch_matmul(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_matmul_attrs>();
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  const int64_t batch = call.out_dim(0, 0), rows = call.out_dim(0, 1), columns = call.out_dim(0, 2);
  const int64_t inner = call.in_dim(0, ta ? 1 : 2);
  const Values &a = call.in(0), &b = call.in(1);
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += a[at(i * rows * inner + (ta ? k * rows + m : m * inner + k))] *
                 b[at(i * inner * columns + (tb ? n * inner + k : k * columns + n))];
        }
        call.out()[at((i * rows + m) * columns + n)] = sum;
      }
    }
  }
}

void matmul_bias_activation(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_matmul_bias_activation_attrs>();
  multiply(call, attrs.transpose_a != 0, attrs.transpose_b != 0, &call.in(2), attrs.activation);
}

}  // namespace

std::vector<OracleEntry> matmul_oracle() {
  return {{GPUNN_OP_MATMUL, matmul},
          {GPUNN_OP_BATCH_MATMUL, batch_matmul},
          {GPUNN_OP_MATMUL_BIAS_ACTIVATION, matmul_bias_activation}};
}

}  // namespace gpunn::conformance
