// The mean and the sum of squared differences of a set of numbers, and their merge over two sets (Chan, Golub and
// LeVeque, 1983).
#pragma once

#include <cuda_runtime.h>

namespace gpunn::cuda_tiled {

struct Moments {
  float n;
  float mean;
  float squares;  // the sum of (x - mean)^2
};

__device__ inline Moments merge(const Moments& a, const Moments& b) {
  if (b.n == 0.0F) return a;
  if (a.n == 0.0F) return b;
  const float n = a.n + b.n;
  const float part = b.n / n;
  const float apart = b.mean - a.mean;
  return {n, a.mean + apart * part, a.squares + b.squares + apart * apart * a.n * part};
}

}  // namespace gpunn::cuda_tiled
