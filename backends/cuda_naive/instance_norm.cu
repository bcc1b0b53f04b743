// INSTANCE_NORM: one thread block computes one plane, which is a channel of a row. In the gradient one block computes
// dx and the sums of one plane. Then one thread a channel adds the sums of its planes for dgamma and dbeta.
//
// The threads of a block stride through the plane together, so the reads are coalesced. The block reads the plane three
// times: for the mean, for the squared differences from it, and for the result. A plane fits in the first-level cache,
// which serves all reads but the first. There are enough planes to keep the GPU busy, unlike the channels of batch
// norm: 64 channels in a batch of 64 are 4096 planes. If there are few planes, a block has more threads. The next
// version would keep a plane in the registers of its block and load four elements at a time. It would give a plane of a
// few hundred elements to a single warp, which needs no barriers to add.
#include <algorithm>
#include <cstdint>

#include "block_tree.cuh"
#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// Where there are fewer planes than this, blocks of kThreads would leave much of the GPU idle.
constexpr int64_t kManyPlanes = 1024;

Launch block_each_plane(const InstanceNorm& shape) {
  return tree_each(shape.planes(), shape.size, shape.planes() < kManyPlanes ? kMostTreeThreads : kThreads);
}

template <class T>
__global__ void instance_norm(const T* x, const float* gamma, const float* beta, T* y, float* means, float* rstds,
                              InstanceNorm shape) {
  const auto terms = static_cast<float>(shape.terms());
  for (int64_t plane = blockIdx.x; plane < shape.planes(); plane += gridDim.x) {
    const T* in = x + plane * shape.size;
    T* out = y + plane * shape.size;
    float sum = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.size; i += blockDim.x) sum += static_cast<float>(in[i]);
    const float mean = block_sum(sum) / terms;
    float squares = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.size; i += blockDim.x) {
      const float apart = static_cast<float>(in[i]) - mean;
      squares += apart * apart;
    }
    const float rstd = 1.0F / sqrtf(block_sum(squares) / terms + shape.epsilon);
    const int64_t channel = plane % shape.channels;
    const float factor = rstd * gamma[channel];
    const float shift = beta[channel];
    for (int64_t i = threadIdx.x; i < shape.size; i += blockDim.x) {
      out[i] = static_cast<T>((static_cast<float>(in[i]) - mean) * factor + shift);
    }
    if (threadIdx.x == 0) {
      means[plane] = mean;
      rstds[plane] = rstd;
    }
  }
}

struct SavedInstanceNorm {
  const float* gamma;
  const float* mean;
  const float* rstd;
};

// What a plane adds to dgamma and dbeta of its channel.
struct PlaneSums {
  double* dgamma;
  double* dbeta;
};

template <class T>
__global__ void instance_norm_backward(const T* dy, const T* x, SavedInstanceNorm saved, T* dx, PlaneSums to,
                                       InstanceNorm shape) {
  const auto terms = static_cast<float>(shape.terms());
  for (int64_t plane = blockIdx.x; plane < shape.planes(); plane += gridDim.x) {
    const int64_t begin = plane * shape.size;
    const float mean = saved.mean[plane];
    const float rstd = saved.rstd[plane];
    float sum = 0.0F;
    float product = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.size; i += blockDim.x) {
      const auto gradient = static_cast<float>(dy[begin + i]);
      sum += gradient;
      product += gradient * (static_cast<float>(x[begin + i]) - mean);
    }
    sum = block_sum(sum);
    product = block_sum(product) * rstd;
    const float factor = saved.gamma[plane % shape.channels] * rstd;
    const float offset = sum / terms;
    const float slope = product * rstd / terms;
    for (int64_t i = threadIdx.x; i < shape.size; i += blockDim.x) {
      const float apart = static_cast<float>(x[begin + i]) - mean;
      dx[begin + i] = static_cast<T>(factor * (static_cast<float>(dy[begin + i]) - offset - apart * slope));
    }
    if (threadIdx.x == 0) {
      to.dgamma[plane] = static_cast<double>(product);
      to.dbeta[plane] = static_cast<double>(sum);
    }
  }
}

__global__ void add_planes(PlaneSums sums, float* dgamma, float* dbeta, InstanceNorm shape) {
  const int64_t channel = thread_index();
  if (channel >= shape.channels) return;
  double product = 0.0;
  double sum = 0.0;
  for (int64_t plane = channel; plane < shape.planes(); plane += shape.channels) {
    product += sums.dgamma[plane];
    sum += sums.dbeta[plane];
  }
  dgamma[channel] = static_cast<float>(product);
  dbeta[channel] = static_cast<float>(sum);
}

template <class T>
void run_instance_norm(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  launch(instance_norm<T>, block_each_plane(shape), stream, args.in<T>(0), args.in<float>(1), args.in<float>(2),
         args.out<T>(0), args.out<float>(1), args.out<float>(2), shape);
}

template <class T>
void run_instance_norm_backward(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const SavedInstanceNorm saved{.gamma = args.in<float>(2), .mean = args.in<float>(3), .rstd = args.in<float>(4)};
  auto* workspace = args.workspace<double>();
  const PlaneSums sums{.dgamma = workspace, .dbeta = workspace + shape.planes()};
  launch(instance_norm_backward<T>, block_each_plane(shape), stream, args.in<T>(0), args.in<T>(1), saved,
         args.out<T>(0), sums, shape);
  launch(add_planes, thread_each(shape.channels), stream, sums, args.out<float>(1), args.out<float>(2), shape);
}

}  // namespace

void add_instance_norm_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_INSTANCE_NORM, "instance_norm", instance_norm_of,
         each_floating([](auto x) { return run_instance_norm<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_INSTANCE_NORM_BACKWARD, "instance_norm_backward", instance_norm_backward_of,
         each_floating([](auto x) { return run_instance_norm_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
