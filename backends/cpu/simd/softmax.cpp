// Rows are often as short as ten numbers, so the exponentials of a block of rows are taken as one flat loop over memory
// that stays in the first-level cache.
#include "simd/softmax.hpp"

#include "simd/lanes/exp_rows.hpp"
#include "simd/lanes/maximum.hpp"
#include "simd/lanes/sum.hpp"

namespace gpunn::cpu {
namespace {

// out = in less the maximum of each row.
inline void subtract_maxima(const float* in, float* out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    const float most = maximum(in + row * columns, columns);
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) out[row * columns + c] = in[row * columns + c] - most;
  }
}

void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
  const int64_t step = rows_per_block(columns);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = smaller(step, rows - first);
    const float* in = x + first * columns;
    float* out = y + first * columns;
    subtract_maxima(in, out, count, columns);
    exp_n(out, out, count * columns);
    for (int64_t row = 0; row < count; ++row) {
      const float scale = 1.0F / sum_of(out + row * columns, columns);
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) out[row * columns + c] *= scale;
    }
  }
}

void softmax_backward(const float* dy, const float* y, float* dx, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    float dot = 0.0F;
#pragma omp simd reduction(+ : dot)
    for (int64_t c = 0; c < columns; ++c) dot += dy[c] * y[c];
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) dx[c] = y[c] * (dy[c] - dot);
    dy += columns;
    y += columns;
    dx += columns;
  }
}

void log_softmax(const float* x, float* y, int64_t rows, int64_t columns) {
  alignas(64) float buffer[kSoftmaxBlock];
  const int64_t step = rows_per_block(columns);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = smaller(step, rows - first);
    const float* in = x + first * columns;
    float* out = y + first * columns;
    subtract_maxima(in, out, count, columns);
    if (columns >= kSoftmaxBlock) {
      buffer[0] = exp_sum(out, 0.0F, columns, buffer);
    } else {
      exp_n(out, buffer, count * columns);
      // Row r's sum goes where row 0's or an earlier row's terms were.
      for (int64_t row = 0; row < count; ++row) buffer[row] = sum_of(buffer + row * columns, columns);
    }
    for (int64_t row = 0; row < count; ++row) {
      const float log_sum = __builtin_logf(buffer[row]);
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) out[row * columns + c] -= log_sum;
    }
  }
}

void log_softmax_backward(const float* dy, const float* y, float* dx, int64_t rows, int64_t columns) {
  const int64_t step = rows_per_block(columns);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = smaller(step, rows - first);
    const int64_t offset = first * columns;
    exp_n(y + offset, dx + offset, count * columns);
    for (int64_t row = first; row < first + count; ++row) {
      const float* g = dy + row * columns;
      float* out = dx + row * columns;
      const float sum = sum_of(g, columns);
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) out[c] = g[c] - out[c] * sum;
    }
  }
}

void cross_entropy_backward(const float* dloss, const float* logp, const int32_t* label, float* dx, int64_t rows,
                            int64_t columns) {
  const int64_t step = rows_per_block(columns);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = smaller(step, rows - first);
    exp_n(logp + first * columns, dx + first * columns, count * columns);
    for (int64_t row = first; row < first + count; ++row) {
      float* out = dx + row * columns;
      const bool known = label[row] >= 0 && label[row] < columns;
      if (!known) {
        for (int64_t c = 0; c < columns; ++c) out[c] = 0.0F;
        continue;
      }
      out[label[row]] -= 1.0F;
      const float g = dloss[row];
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) out[c] *= g;
    }
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const SoftmaxKernels softmax_kernels;
const SoftmaxKernels softmax_kernels{
    softmax, softmax_backward, log_softmax, log_softmax_backward, cross_entropy_backward, exp_n};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
