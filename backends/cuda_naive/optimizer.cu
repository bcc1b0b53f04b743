// SGD, ADAM (and AdamW), RMSPROP, ADAGRAD and LION, in place over flat vectors: one thread updates one parameter. LARS:
// one thread block updates one part, since the rate of a part needs the norms of all its elements.
//
// Neighbouring threads update neighbouring parameters, so the accesses are coalesced. Each number is read and written
// once, so the time is that of moving the bytes: 12 a parameter for plain SGD, 28 for Adam. The next version would move
// 16 bytes a thread and access. Little else can improve, since all parameters of a model lie in one vector and the
// whole step is one launch already.
//
// The kernels read the learning rate and the step from device memory, not from their arguments: a captured graph would
// replay the arguments of the step that was captured.
#include "block_tree.cuh"
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

__global__ void adagrad(gpunn_adagrad_attrs attrs, float* w, const float* g, const float* lr, float* sum, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
  const float gradient = g[i] + weight_decay * w[i];
  const float total = sum[i] + gradient * gradient;
  sum[i] = total;
  w[i] -= *lr * (gradient / (sqrtf(total) + attrs.epsilon));
}

__global__ void lion(gpunn_lion_attrs attrs, float* w, const float* g, const float* lr, float* m, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const float keep = i < attrs.decayed ? 1.0F - *lr * attrs.weight_decay : 1.0F;
  const float mixed = attrs.beta1 * m[i] + (1.0F - attrs.beta1) * g[i];
  const float sign = mixed > 0.0F ? 1.0F : mixed < 0.0F ? -1.0F : mixed;  // of NaN, NaN
  w[i] = keep * w[i] - *lr * sign;
  m[i] = attrs.beta2 * m[i] + (1.0F - attrs.beta2) * g[i];
}

// The block walks over its part twice: for the norms, whose sums meet in the tree of block_tree.cuh and so have the
// same bits in every run, then for the update. Threads read neighbours both times. A network has few parts and they
// differ in size by thousands, so most multiprocessors wait for the block of the largest: what the next version would
// change is to have many blocks sum a part, with a second kernel that adds their sums in order.
//
// The offsets are data: place_in() keeps what they say within the arrays.
__global__ void lars(gpunn_lars_attrs attrs, float* w, const float* g, const float* lr, float* velocity,
                     const int64_t* offset, int64_t parts, int64_t n) {
  for (int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
    const int64_t begin = place_in(n, offset[part]);
    const int64_t end = place_in(n, offset[part + 1]);
    float rate = *lr;
    if (begin < attrs.decayed) {  // the same for all threads of the block: all of them meet in block_sum
      double w_sum = 0.0;
      double g_sum = 0.0;
      for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        w_sum += static_cast<double>(w[i]) * static_cast<double>(w[i]);
        g_sum += static_cast<double>(g[i]) * static_cast<double>(g[i]);
      }
      const double w_norm = sqrt(block_sum(w_sum));
      const double g_norm = sqrt(block_sum(g_sum));
      if (w_norm != 0.0 && g_norm != 0.0) {
        const double decay = static_cast<double>(attrs.weight_decay) * w_norm;
        rate = static_cast<float>(static_cast<double>(rate) * static_cast<double>(attrs.trust) * w_norm /
                                  (g_norm + decay + static_cast<double>(attrs.epsilon)));
      }
    }
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const float weight_decay = i < attrs.decayed ? attrs.weight_decay : 0.0F;
      const float speed = attrs.momentum * velocity[i] + rate * (g[i] + weight_decay * w[i]);
      velocity[i] = speed;
      w[i] -= speed;
    }
  }
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

void run_adagrad(const Adagrad& plan, cudaStream_t stream, const OpArgs& args) {
  launch(adagrad, thread_each(plan.n), stream, plan.attrs, args.out<float>(0), args.in<float>(1), args.in<float>(2),
         args.out<float>(1), plan.n);
}

void run_lion(const Lion& plan, cudaStream_t stream, const OpArgs& args) {
  launch(lion, thread_each(plan.n), stream, plan.attrs, args.out<float>(0), args.in<float>(1), args.in<float>(2),
         args.out<float>(1), plan.n);
}

void run_lars(const Lars& plan, cudaStream_t stream, const OpArgs& args) {
  launch(lars, tree_each(plan.parts, plan.n), stream, plan.attrs, args.out<float>(0), args.in<float>(1),
         args.in<float>(2), args.out<float>(1), args.in<int64_t>(4), plan.parts, plan.n);
}

}  // namespace

void add_optimizer_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SGD_UPDATE, "sgd", sgd_of, run_sgd);
  add_op(device, GPUNN_OP_ADAM_UPDATE, "adam", adam_of, run_adam);
  add_op(device, GPUNN_OP_RMSPROP_UPDATE, "rmsprop", rmsprop_of, run_rmsprop);
  add_op(device, GPUNN_OP_ADAGRAD_UPDATE, "adagrad", adagrad_of, run_adagrad);
  add_op(device, GPUNN_OP_LION_UPDATE, "lion", lion_of, run_lion);
  add_op(device, GPUNN_OP_LARS_UPDATE, "lars", lars_of, run_lars);
}

}  // namespace gpunn::cuda_naive
