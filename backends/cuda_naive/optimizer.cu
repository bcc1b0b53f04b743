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
#include "cuda_common/formulas.cuh"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <int32_t op>
using Update = formulas::Formula<op>;

// The formula, with its attributes, is passed by value: arguments of a kernel lie in constant memory, which a warp
// reads at once when all its threads want the same.
__global__ void sgd(Update<GPUNN_OP_SGD_UPDATE> update, float* w, const float* g, const float* lr, float* velocity,
                    int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  float speed = velocity != nullptr ? velocity[i] : 0.0F;
  update(w[i], g[i], speed, *lr, formulas::decay_of(update.attrs, i));
  if (velocity != nullptr) velocity[i] = speed;
}

// What grows with the step is the same for all parameters, and a power in f64 costs more than the rest of the update:
// one thread computes it for its block, the others wait and read it from shared memory.
__global__ void adam(Update<GPUNN_OP_ADAM_UPDATE> update, float* w, const float* g, const float* lr,
                     const int64_t* step, float* m, float* v, int64_t n) {
  __shared__ float correction1;
  __shared__ float correction2;
  if (threadIdx.x == 0) {
    correction1 = formulas::adam_correction(update.attrs.beta1, *step);
    correction2 = formulas::adam_correction(update.attrs.beta2, *step);
  }
  __syncthreads();  // before any thread leaves: all must arrive here
  const int64_t i = thread_index();
  if (i >= n) return;
  const float decay = formulas::decay_of(update.attrs, i);
  const float keep = update.attrs.decoupled != 0 ? formulas::kept(*lr, decay) : 1.0F;
  update(w[i], g[i], m[i], v[i], *lr, decay, keep, correction1, correction2);
}

__global__ void rmsprop(Update<GPUNN_OP_RMSPROP_UPDATE> update, float* w, const float* g, const float* lr,
                        float* square, float* velocity, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  float speed = velocity != nullptr ? velocity[i] : 0.0F;
  update(w[i], g[i], square[i], speed, *lr, formulas::decay_of(update.attrs, i));
  if (velocity != nullptr) velocity[i] = speed;
}

__global__ void adagrad(Update<GPUNN_OP_ADAGRAD_UPDATE> update, float* w, const float* g, const float* lr, float* sum,
                        int64_t n) {
  const int64_t i = thread_index();
  if (i < n) update(w[i], g[i], sum[i], *lr, formulas::decay_of(update.attrs, i));
}

__global__ void lion(Update<GPUNN_OP_LION_UPDATE> update, float* w, const float* g, const float* lr, float* m,
                     int64_t n) {
  const int64_t i = thread_index();
  if (i < n) update(w[i], g[i], m[i], *lr, formulas::kept(*lr, formulas::decay_of(update.attrs, i)));
}

// The block walks over its part twice: for the norms, whose sums meet in the tree of block_tree.cuh and so have the
// same bits in every run, then for the update. Threads read neighbours both times. A network has few parts and they
// differ in size by thousands, so most multiprocessors wait for the block of the largest: what the next version would
// change is to have many blocks sum a part, with a second kernel that adds their sums in order.
//
// The offsets are data: place_in() keeps what they say within the arrays.
__global__ void lars(Update<GPUNN_OP_LARS_UPDATE> update, float* w, const float* g, const float* lr, float* velocity,
                     const int64_t* offset, int64_t parts, int64_t n) {
  const gpunn_lars_attrs& attrs = update.attrs;
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
      update(w[i], g[i], velocity[i], rate, formulas::decay_of(attrs, i));
    }
  }
}

void run_sgd(const Sgd& plan, cudaStream_t stream, const OpArgs& args) {
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(1);
  launch(sgd, thread_each(plan.n), stream, Update<GPUNN_OP_SGD_UPDATE>{plan.attrs}, args.out<float>(0),
         args.in<float>(1), args.in<float>(2), velocity, plan.n);
}

void run_adam(const Adam& plan, cudaStream_t stream, const OpArgs& args) {
  launch(adam, thread_each(plan.n), stream, Update<GPUNN_OP_ADAM_UPDATE>{plan.attrs}, args.out<float>(0),
         args.in<float>(1), args.in<float>(2), args.in<int64_t>(3), args.out<float>(1), args.out<float>(2), plan.n);
}

void run_rmsprop(const Rmsprop& plan, cudaStream_t stream, const OpArgs& args) {
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(2);
  launch(rmsprop, thread_each(plan.n), stream, Update<GPUNN_OP_RMSPROP_UPDATE>{plan.attrs}, args.out<float>(0),
         args.in<float>(1), args.in<float>(2), args.out<float>(1), velocity, plan.n);
}

void run_adagrad(const Adagrad& plan, cudaStream_t stream, const OpArgs& args) {
  launch(adagrad, thread_each(plan.n), stream, Update<GPUNN_OP_ADAGRAD_UPDATE>{plan.attrs}, args.out<float>(0),
         args.in<float>(1), args.in<float>(2), args.out<float>(1), plan.n);
}

void run_lion(const Lion& plan, cudaStream_t stream, const OpArgs& args) {
  launch(lion, thread_each(plan.n), stream, Update<GPUNN_OP_LION_UPDATE>{plan.attrs}, args.out<float>(0),
         args.in<float>(1), args.in<float>(2), args.out<float>(1), plan.n);
}

void run_lars(const Lars& plan, cudaStream_t stream, const OpArgs& args) {
  launch(lars, tree_each(plan.parts, plan.n), stream, Update<GPUNN_OP_LARS_UPDATE>{plan.attrs}, args.out<float>(0),
         args.in<float>(1), args.in<float>(2), args.out<float>(1), args.in<int64_t>(4), plan.parts, plan.n);
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
