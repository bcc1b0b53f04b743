// SGD and ADAM (and AdamW) over flat vectors in place, by the kernel of each.cuh: 12 to 28 bytes a parameter, moved by
// 16 bytes for each thread and access. The learning rate and the step are read from device memory, since a captured
// graph would replay kernel arguments.
#include "common/optimizer.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/formulas.cuh"
#include "device.hpp"
#include "elementwise/each.cuh"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

struct PlainSgd {
  static constexpr int kReads = 2, kWrites = 1;  // w, g
  formulas::Formula<GPUNN_OP_SGD_UPDATE> update;
  const float* lr;
  float rate = 0.0F;

  __device__ void begin() {
    update.attrs.momentum = 0.0F;  // as it is, for the compiler to know
    rate = *lr;
  }
  __device__ void operator()(int64_t i, const float (&in)[2], float (&out)[1]) const {
    float none = 0.0F;
    out[0] = in[0];
    update(out[0], in[1], none, rate, formulas::decay_of(update.attrs, i));
  }
};

struct MomentumSgd {
  static constexpr int kReads = 3, kWrites = 2;  // w, g, velocity
  formulas::Formula<GPUNN_OP_SGD_UPDATE> update;
  const float* lr;
  float rate = 0.0F;

  __device__ void begin() { rate = *lr; }
  __device__ void operator()(int64_t i, const float (&in)[3], float (&out)[2]) const {
    __builtin_assume(update.attrs.momentum != 0.0F);
    out[0] = in[0];
    out[1] = in[2];
    update(out[0], in[1], out[1], rate, formulas::decay_of(update.attrs, i));
  }
};

// What grows with the step is the same for all parameters, and a power in f64 costs more than the rest of the update:
// one thread computes it for its block.
struct AdamStep {
  static constexpr int kReads = 4, kWrites = 3;  // w, g, m, v
  formulas::Formula<GPUNN_OP_ADAM_UPDATE> update;
  const float* lr;
  const int64_t* step;
  float rate = 0.0F;
  float correction1 = 0.0F;
  float correction2 = 0.0F;

  __device__ void begin() {
    __shared__ float corrections[2];
    if (threadIdx.x == 0) {
      corrections[0] = formulas::adam_correction(update.attrs.beta1, *step);
      corrections[1] = formulas::adam_correction(update.attrs.beta2, *step);
    }
    __syncthreads();
    correction1 = corrections[0];
    correction2 = corrections[1];
    rate = *lr;
  }
  __device__ void operator()(int64_t i, const float (&in)[4], float (&out)[3]) const {
    const float decay = formulas::decay_of(update.attrs, i);
    const float keep = update.attrs.decoupled != 0 ? formulas::kept(rate, decay) : 1.0F;
    out[0] = in[0];
    out[1] = in[2];
    out[2] = in[3];
    update(out[0], in[1], out[1], out[2], rate, decay, keep, correction1, correction2);
  }
};

void run_sgd(const Sgd& plan, cudaStream_t stream, const OpArgs& args) {
  auto* w = args.out<float>(0);
  const auto* g = args.in<float>(1);
  const auto* lr = args.in<float>(2);
  if (plan.attrs.momentum == 0.0F) return each(PlainSgd{{plan.attrs}, lr}, {{w, g}, {w}}, plan.n, stream);
  auto* velocity = args.out<float>(1);
  each(MomentumSgd{{plan.attrs}, lr}, {{w, g, velocity}, {w, velocity}}, plan.n, stream);
}

void run_adam(const Adam& plan, cudaStream_t stream, const OpArgs& args) {
  auto *w = args.out<float>(0), *m = args.out<float>(1), *v = args.out<float>(2);
  each(AdamStep{{plan.attrs}, args.in<float>(2), args.in<int64_t>(3)}, {{w, args.in<float>(1), m, v}, {w, m, v}},
       plan.n, stream);
}

}  // namespace

void add_optimizer_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_SGD_UPDATE, "sgd", sgd_of, run_sgd);
  add_op(device, GPUNN_OP_ADAM_UPDATE, "adam", adam_of, run_adam);
}

}  // namespace gpunn::cuda_tiled
