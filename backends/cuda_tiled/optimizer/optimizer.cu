// SGD and ADAM (and AdamW) over flat vectors in place, by the kernel of each.cuh: 12 to 28 bytes a parameter, moved by
// 16 bytes for each thread and access. The learning rate and the step are read from device memory, since a captured
// graph would replay kernel arguments.
#include "common/optimizer.hpp"
#include "cuda_common/add_op.hpp"
#include "device.hpp"
#include "elementwise/each.cuh"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

struct PlainSgd {
  static constexpr int kReads = 2, kWrites = 1;  // w, g
  gpunn_sgd_attrs attrs;
  const float* lr;
  float rate = 0.0F;

  __device__ void begin() { rate = *lr; }
  __device__ void operator()(int64_t i, const float (&in)[2], float (&out)[1]) const {
    const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
    out[0] = in[0] - rate * (in[1] + weight_decay * in[0]);
  }
};

struct MomentumSgd {
  static constexpr int kReads = 3, kWrites = 2;  // w, g, velocity
  gpunn_sgd_attrs attrs;
  const float* lr;
  float rate = 0.0F;

  __device__ void begin() { rate = *lr; }
  __device__ void operator()(int64_t i, const float (&in)[3], float (&out)[2]) const {
    const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
    const float gradient = in[1] + weight_decay * in[0];
    const float speed = attrs.momentum * in[2] + gradient;
    const float step = attrs.nesterov != 0 ? gradient + attrs.momentum * speed : speed;
    out[0] = in[0] - rate * step;
    out[1] = speed;
  }
};

// What grows with the step is the same for all parameters, and a power in f64 costs more than the rest of the update:
// one thread computes it for its block. In f64, because 1 - beta^t loses every digit of f32 while t is small.
struct AdamStep {
  static constexpr int kReads = 4, kWrites = 3;  // w, g, m, v
  gpunn_adam_attrs attrs;
  const float* lr;
  const int64_t* step;
  float rate = 0.0F;
  float correction1 = 0.0F;
  float correction2 = 0.0F;

  __device__ void begin() {
    __shared__ float corrections[2];
    if (threadIdx.x == 0) {
      const double t = static_cast<double>(*step) + 1.0;
      corrections[0] = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(attrs.beta1), t)));
      corrections[1] = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(attrs.beta2), t)));
    }
    __syncthreads();
    correction1 = corrections[0];
    correction2 = corrections[1];
    rate = *lr;
  }
  __device__ void operator()(int64_t i, const float (&in)[4], float (&out)[3]) const {
    const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
    const bool decoupled = attrs.decoupled != 0;
    const float gradient = decoupled ? in[1] : in[1] + weight_decay * in[0];
    const float keep = decoupled ? 1.0F - rate * weight_decay : 1.0F;
    const float first = attrs.beta1 * in[2] + (1.0F - attrs.beta1) * gradient;
    const float second = attrs.beta2 * in[3] + (1.0F - attrs.beta2) * (gradient * gradient);
    out[0] = keep * in[0] - rate * (first * correction1) / (sqrtf(second * correction2) + attrs.epsilon);
    out[1] = first;
    out[2] = second;
  }
};

void run_sgd(const Sgd& plan, cudaStream_t stream, const OpArgs& args) {
  auto* w = args.out<float>(0);
  const auto* g = args.in<float>(1);
  const auto* lr = args.in<float>(2);
  if (plan.attrs.momentum == 0.0F) return each(PlainSgd{plan.attrs, lr}, {{w, g}, {w}}, plan.n, stream);
  auto* velocity = args.out<float>(1);
  each(MomentumSgd{plan.attrs, lr}, {{w, g, velocity}, {w, velocity}}, plan.n, stream);
}

void run_adam(const Adam& plan, cudaStream_t stream, const OpArgs& args) {
  auto *w = args.out<float>(0), *m = args.out<float>(1), *v = args.out<float>(2);
  each(AdamStep{plan.attrs, args.in<float>(2), args.in<int64_t>(3)}, {{w, args.in<float>(1), m, v}, {w, m, v}}, plan.n,
       stream);
}

}  // namespace

void add_optimizer_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_SGD_UPDATE, "sgd", sgd_of, run_sgd);
  add_op(device, GPUNN_OP_ADAM_UPDATE, "adam", adam_of, run_adam);
}

}  // namespace gpunn::cuda_tiled
