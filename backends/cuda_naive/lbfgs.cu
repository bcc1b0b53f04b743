// LBFGS_UPDATE: the two-loop recursion, by one thread block. Each step of the recursion needs a sum over all
// parameters, and only the threads of a block can wait for each other within a kernel. Each thread has the parameters
// whose number is its own modulo the number of threads, so it reads only what it wrote itself: the sums alone cross
// between threads, by the tree of block_tree.cuh.
//
// One block moves about a hundredth of what the memory could deliver. The next version would share the parameters among
// as many blocks as the GPU can hold at once, which then can wait for each other, too.
#include "block_tree.cuh"
#include "common/optimizer.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "cuda_common/lbfgs.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

struct LbfgsArrays : LbfgsTensors {
  float *direction, *gradient;  // in the workspace
  double *inverse, *share;      // of each pair
};

// body(i) for the parameters of this thread.
template <class Body>
__device__ void for_own(int64_t n, const Body& body) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) body(i);
}

// In f64, since the recursion multiplies what is left when large numbers cancel.
__device__ double dot(const float* a, const float* b, int64_t n) {
  double sum = 0.0;
  for_own(n, [&](int64_t i) { sum += static_cast<double>(a[i]) * static_cast<double>(b[i]); });
  return block_sum(sum);
}

__device__ void add_scaled(float* to, double factor, const float* other, int64_t n) {
  const auto by = static_cast<float>(factor);
  for_own(n, [&](int64_t i) { to[i] += by * other[i]; });
}

// direction = -H gradient
__device__ void find_direction(const LbfgsArrays& a, int64_t pairs, int64_t n) {
  double scale = 1.0;
  for (int64_t k = pairs - 1; k >= 0; --k) {
    const float *step = a.steps + k * n, *change = a.changes + k * n;
    const double product = dot(step, change, n);
    const double inverse = Lbfgs::inverse(product);
    const double share = inverse * dot(step, a.direction, n);
    if (k == pairs - 1) scale = Lbfgs::scale(product, dot(change, change, n));
    add_scaled(a.direction, -share, change, n);
    if (threadIdx.x == 0) {
      a.inverse[k] = inverse;
      a.share[k] = share;
    }
  }
  for_own(n, [&](int64_t i) { a.direction[i] *= static_cast<float>(scale); });
  for (int64_t k = 0; k < pairs; ++k) {
    const double product = dot(a.changes + k * n, a.direction, n);  // the first thread's numbers can be seen behind it
    add_scaled(a.direction, a.share[k] - a.inverse[k] * product, a.steps + k * n, n);
  }
}

__global__ void lbfgs(Lbfgs plan, LbfgsArrays a) {
  const int64_t n = plan.n, pairs = plan.pairs;
  double size = 0.0;
  double product = 0.0;
  for_own(n, [&](int64_t i) {
    const bool decays = plan.attrs.weight_decay != 0.0F && i < plan.attrs.decayed;
    const float gradient = decays ? a.g[i] + plan.attrs.weight_decay * a.w[i] : a.g[i];
    a.gradient[i] = gradient;
    a.direction[i] = -gradient;
    size += static_cast<double>(fabsf(gradient));
    product += static_cast<double>(gradient - a.last_gradient[i]) * static_cast<double>(a.last_step[i]);
  });
  size = block_sum(size);
  product = block_sum(product);
  if (!Lbfgs::is_finite(size)) {
    for_own(n, [&](int64_t i) {
      a.last_step[i] *= 0.5F;
      a.w[i] -= a.last_step[i];
    });
    return;
  }
  const bool good = Lbfgs::is_good(product);
  for_own(n, [&](int64_t i) {
    if (good) {
      for (int64_t at = i; at < (pairs - 1) * n; at += n) {
        a.steps[at] = a.steps[at + n];
        a.changes[at] = a.changes[at + n];
      }
      a.steps[(pairs - 1) * n + i] = a.last_step[i];
      a.changes[(pairs - 1) * n + i] = a.gradient[i] - a.last_gradient[i];
    }
    a.last_gradient[i] = a.gradient[i];
  });
  find_direction(a, pairs, n);
  const bool falls = Lbfgs::falls(dot(a.gradient, a.direction, n));
  const auto rate = static_cast<float>(static_cast<double>(*a.lr) * Lbfgs::rate(*a.step, size));
  for_own(n, [&](int64_t i) {
    a.last_step[i] = falls ? rate * a.direction[i] : 0.0F;
    a.w[i] += a.last_step[i];
  });
}

struct LbfgsPlan : Lbfgs {
  uint64_t workspace_bytes = 0;
};

LbfgsPlan plan_lbfgs(const OpDesc& desc) {
  const Lbfgs plan = lbfgs_of(desc);
  return {plan,
          static_cast<uint64_t>(plan.pairs) * 2 * sizeof(double) + static_cast<uint64_t>(plan.n) * 2 * sizeof(float)};
}

void run_lbfgs(const LbfgsPlan& plan, cudaStream_t stream, const OpArgs& args) {
  auto* const numbers = args.workspace<double>();
  auto* const vectors = reinterpret_cast<float*>(numbers + 2 * plan.pairs);
  const LbfgsArrays arrays{lbfgs_tensors(args), vectors, vectors + plan.n, numbers, numbers + plan.pairs};
  launch(lbfgs, tree_each(1, plan.n, kMostTreeThreads), stream, plan, arrays);
}

}  // namespace

void add_lbfgs_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_LBFGS_UPDATE, "lbfgs", plan_lbfgs, run_lbfgs);
}

}  // namespace gpunn::cuda_naive
