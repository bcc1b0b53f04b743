// SGD, ADAM (and AdamW) and RMSPROP over flat vectors in place: a thread a parameter.
//
// Neighbouring threads update neighbouring parameters: coalesced. Each number is read and written once, so the time is
// that of moving the bytes: 12 a parameter for plain SGD, 28 for Adam. What the next version would change: 16 bytes a
// thread and access, and little else, since all parameters of a model lie in one vector and the whole step is one
// launch already.
//
// The learning rate and the step are read from device memory, not passed as arguments: a captured graph would replay
// the arguments of the step that was captured.
#include "common/optimizer.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// The attributes are passed by value: arguments of a kernel lie in constant memory, which a warp reads at once when all
// its threads want the same.
__global__ void sgd(gpunn_sgd_attrs attrs, float* w, const float* g, const float* lr, float* velocity, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
  const float gradient = g[i] + weight_decay * w[i];
  float step = gradient;
  if (velocity != nullptr) {
    const float speed = attrs.momentum * velocity[i] + gradient;
    velocity[i] = speed;
    step = attrs.nesterov != 0 ? gradient + attrs.momentum * speed : speed;
  }
  w[i] -= *lr * step;
}

// What grows with the step is the same for all parameters, and a power in f64 costs more than the rest of the update:
// one thread computes it for its block, the others wait and read it from shared memory. In f64, because 1 - beta^t
// loses every digit of f32 while t is small.
__global__ void adam(gpunn_adam_attrs attrs, float* w, const float* g, const float* lr, const int64_t* step, float* m,
                     float* v, int64_t n) {
  __shared__ float correction1;
  __shared__ float correction2;
  if (threadIdx.x == 0) {
    const double t = static_cast<double>(*step) + 1.0;
    correction1 = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(attrs.beta1), t)));
    correction2 = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(attrs.beta2), t)));
  }
  __syncthreads();  // before any thread leaves: all must arrive here
  const int64_t i = thread_index();
  if (i >= n) return;
  const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
  const bool decoupled = attrs.decoupled != 0;
  const float gradient = decoupled ? g[i] : g[i] + weight_decay * w[i];
  const float keep = decoupled ? 1.0F - *lr * weight_decay : 1.0F;
  const float first = attrs.beta1 * m[i] + (1.0F - attrs.beta1) * gradient;
  const float second = attrs.beta2 * v[i] + (1.0F - attrs.beta2) * (gradient * gradient);
  m[i] = first;
  v[i] = second;
  w[i] = keep * w[i] - *lr * (first * correction1) / (sqrtf(second * correction2) + attrs.epsilon);
}

__global__ void rmsprop(gpunn_rmsprop_attrs attrs, float* w, const float* g, const float* lr, float* square,
                        float* velocity, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
  const float gradient = g[i] + weight_decay * w[i];
  const float mean = attrs.alpha * square[i] + (1.0F - attrs.alpha) * (gradient * gradient);
  square[i] = mean;
  float step = gradient / (sqrtf(mean) + attrs.epsilon);
  if (velocity != nullptr) {
    step += attrs.momentum * velocity[i];
    velocity[i] = step;
  }
  w[i] -= *lr * step;
}

void run_sgd(const Sgd& plan, cudaStream_t stream, const OpArgs& args) {
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(1);
  launch(sgd, thread_each(plan.n), stream, plan.attrs, args.out<float>(0), args.in<float>(1), args.in<float>(2),
         velocity, plan.n);
}

void run_adam(const Adam& plan, cudaStream_t stream, const OpArgs& args) {
  launch(adam, thread_each(plan.n), stream, plan.attrs, args.out<float>(0), args.in<float>(1), args.in<float>(2),
         args.in<int64_t>(3), args.out<float>(1), args.out<float>(2), plan.n);
}

void run_rmsprop(const Rmsprop& plan, cudaStream_t stream, const OpArgs& args) {
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(2);
  launch(rmsprop, thread_each(plan.n), stream, plan.attrs, args.out<float>(0), args.in<float>(1), args.in<float>(2),
         args.out<float>(1), velocity, plan.n);
}

}  // namespace

void add_optimizer_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SGD_UPDATE, "sgd", sgd_of, run_sgd);
  add_op(device, GPUNN_OP_ADAM_UPDATE, "adam", adam_of, run_adam);
  add_op(device, GPUNN_OP_RMSPROP_UPDATE, "rmsprop", rmsprop_of, run_rmsprop);
}

}  // namespace gpunn::cuda_naive
