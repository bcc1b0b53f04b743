// ATTENTION and ATTENTION_BACKWARD by blocks of queries and keys, so that no matrix of scores is in memory (Dao, 2023).
// A task is a block of queries of one head, or in the backward a whole head.
#include "common/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "add_op.hpp"
#include "kernels.hpp"
#include "products/strided_product.hpp"
#include "simd/attention.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// A block of scores is 64 KiB at most, and a block of keys takes no more than this, so that both stay in the
// second-level cache.
constexpr int64_t kMostInBlock = 128;
constexpr int64_t kScoreBlockFloats = 32768;

struct AttentionPlan {
  Attention shape;
  const GemmKernels* products = nullptr;
  const AttentionKernels* kernels = nullptr;
  int threads = 1;
  int64_t query_block = 1;
  int64_t key_block = 1;
  int64_t width = 0;          // of a row in scratch memory: a multiple of the lanes
  int64_t thread_floats = 0;  // of scratch memory
  uint64_t workspace_bytes = 0;

  int64_t score_stride() const { return round_up(key_block, products->lanes); }
  int64_t score_floats() const { return query_block * score_stride(); }
  int64_t packed() const { return packed_floats(*products, key_block, shape.width); }
  ScoreBlock scores(int64_t rows, int64_t columns) const { return {rows, columns, score_stride(), shape.scale}; }
  // Of a product with the keys of a block.
  ProductSize by_keys(int64_t rows, int64_t keys) const { return {rows, round_up(keys, products->lanes), shape.width}; }
};

// The floats of a thread, given out one piece after the other, each aligned for vectors.
class Scratch {
 public:
  explicit Scratch(float* next) : next_(next) {}
  float* take(int64_t floats) {
    used_ += round_up(floats, 16);
    return next_ == nullptr ? nullptr : next_ + used_ - round_up(floats, 16);
  }
  int64_t used() const { return used_; }

 private:
  float* next_;
  int64_t used_ = 0;
};

struct ForwardScratch {
  float *q, *k, *v, *packed, *scores, *mixed, *most, *sum, *factor;

  ForwardScratch(const AttentionPlan& p, Scratch& scratch)
      : q(scratch.take(p.query_block * p.width)),
        k(scratch.take(p.key_block * p.width)),
        v(scratch.take(p.key_block * p.width)),
        packed(scratch.take(p.packed())),
        scores(scratch.take(p.score_floats())),
        mixed(scratch.take(p.query_block * p.width)),
        most(scratch.take(p.query_block)),
        sum(scratch.take(p.query_block)),
        factor(scratch.take(p.query_block)) {}
};

struct BackwardScratch {
  float *dy, *q, *k, *v, *y, *along, *packed_k, *packed_v, *scores, *slopes, *dq, *dk, *dv;

  BackwardScratch(const AttentionPlan& p, Scratch& scratch)
      : dy(scratch.take(p.shape.queries * p.width)),
        q(scratch.take(p.shape.queries * p.width)),
        k(scratch.take(p.key_block * p.width)),
        v(scratch.take(p.key_block * p.width)),
        y(scratch.take(p.width)),
        along(scratch.take(p.shape.queries)),
        packed_k(scratch.take(p.packed())),
        packed_v(scratch.take(p.packed())),
        scores(scratch.take(p.score_floats())),
        slopes(scratch.take(p.score_floats())),
        dq(scratch.take(p.shape.queries * p.width)),
        dk(scratch.take(p.key_block * p.width)),
        dv(scratch.take(p.key_block * p.width)) {}
};

template <class OwnScratch, Attention (*shape_of)(const OpDesc&)>
AttentionPlan make_plan(const OpDesc& desc, int threads) {
  const Attention shape = shape_of(desc);
  AttentionPlan plan{.shape = shape,
                     .products = &GPUNN_SELECT_ISA(gemm_kernels),
                     .kernels = &GPUNN_SELECT_ISA(attention_kernels),
                     .threads = threads};
  const int64_t most = std::clamp<int64_t>(kScoreBlockFloats / shape.width, 16, kMostInBlock);
  plan.query_block = std::max<int64_t>(even_block(shape.queries, most), 1);
  plan.key_block = even_block(shape.keys, most);
  plan.width = round_up(shape.width, plan.products->lanes);
  Scratch scratch(nullptr);
  const OwnScratch measured(plan, scratch);
  plan.thread_floats = scratch.used();
  plan.workspace_bytes =
      static_cast<uint64_t>(plan.thread_floats) * sizeof(float) * static_cast<uint64_t>(plan.threads);
  return plan;
}

template <class T>
Rows rows_of(const AttentionPlan& plan, const T* x, int64_t count, float* scratch) {
  const int64_t width = plan.shape.width;
  if constexpr (std::is_same_v<T, float>) {
    if (width == plan.width) return {x, plan.shape.stride()};
  }
  for (int64_t i = 0; i < count; ++i) {
    float* row = scratch + i * plan.width;
    widen(x + i * plan.shape.stride(), 1, row, width);
    std::fill(row + width, row + plan.width, 0.0F);
  }
  return {scratch, plan.width};
}

template <class T>
void write_rows(const AttentionPlan& plan, const float* from, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) {
    const float* row = from + i * plan.width;
    if constexpr (std::is_same_v<T, float>) {
      std::copy(row, row + plan.shape.width, to + i * plan.shape.stride());
    } else {
      narrow(row, to + i * plan.shape.stride(), plan.shape.width);
    }
  }
}

// What a task reads and writes: pointers to the first query, and the first key, of its head.
template <class T>
struct ForwardTask {
  const T *q, *k, *v;
  T* y;
  float* lse;
  int64_t queries;
};

template <class T>
void run_forward_task(const AttentionPlan& plan, const ForwardTask<T>& task, const ForwardScratch& own) {
  const Attention& s = plan.shape;
  const GemmKernels& products = *plan.products;
  const int64_t rows = task.queries;
  const Rows q = rows_of(plan, task.q, rows, own.q);
  std::fill(own.most, own.most + rows, -std::numeric_limits<float>::infinity());
  std::fill(own.sum, own.sum + rows, 0.0F);
  for (int64_t first = 0; first < s.keys; first += plan.key_block) {
    const int64_t keys = std::min(plan.key_block, s.keys - first);
    const Rows k = rows_of(plan, task.k + first * s.stride(), keys, own.k);
    const Rows v = rows_of(plan, task.v + first * s.stride(), keys, own.v);
    const RightFactor transposed = pack_transposed(products, k, keys, s.width, own.packed);
    multiply(products, plan.by_keys(rows, keys), q, transposed, own.scores, plan.score_stride(), false);
    plan.kernels->weigh(plan.scores(rows, keys), own.scores, own.most, own.sum, own.factor);
    if (first > 0) plan.kernels->scale_rows(own.mixed, rows, plan.width, plan.width, own.factor);
    multiply(products, {rows, plan.width, keys}, {own.scores, plan.score_stride()}, right_factor(products, v),
             own.mixed, plan.width, first > 0);
  }
  for (int64_t i = 0; i < rows; ++i) {
    own.factor[i] = 1.0F / own.sum[i];
    task.lse[i] = own.most[i] + std::log(own.sum[i]);
  }
  plan.kernels->scale_rows(own.mixed, rows, plan.width, plan.width, own.factor);
  write_rows(plan, own.mixed, rows, task.y);
}

template <class T>
void run_forward(const AttentionPlan& plan, const OpArgs& args) {
  const Attention& s = plan.shape;
  const int64_t blocks = divide_up(s.queries, plan.query_block);
  parallel_for(plan.threads, s.samples * s.heads * blocks, [&](int64_t i, int thread) {
    const int64_t head = i / blocks % s.heads, sample = i / blocks / s.heads, first = i % blocks * plan.query_block;
    const int64_t queries_at = s.queries_at(sample, head) + first * s.stride(), keys_at = s.keys_at(sample, head);
    Scratch scratch(args.workspace<float>() + thread * plan.thread_floats);
    run_forward_task<T>(plan,
                        {.q = args.in<T>(0) + queries_at,
                         .k = args.in<T>(1) + keys_at,
                         .v = args.in<T>(2) + keys_at,
                         .y = args.out<T>(0) + queries_at,
                         .lse = args.out<float>(1) + (sample * s.heads + head) * s.queries + first,
                         .queries = std::min(plan.query_block, s.queries - first)},
                        ForwardScratch(plan, scratch));
  });
}

template <class T>
struct BackwardTask {
  const T *dy, *q, *k, *v, *y;
  const float* lse;
  T *dq, *dk, *dv;
};

// A block of keys with all queries: adds to dq, and makes dk and dv.
void run_key_block(const AttentionPlan& plan, const Rows& dy, const Rows& q, const Rows& k, const Rows& v,
                   const float* lse, int64_t keys, bool first, const BackwardScratch& own) {
  const Attention& s = plan.shape;
  const GemmKernels& products = *plan.products;
  const int64_t stride = plan.score_stride();
  const RightFactor k_transposed = pack_transposed(products, k, keys, s.width, own.packed_k);
  const RightFactor v_transposed = pack_transposed(products, v, keys, s.width, own.packed_v);
  for (int64_t i = 0; i < s.queries; i += plan.query_block) {
    const int64_t rows = std::min(plan.query_block, s.queries - i);
    multiply(products, plan.by_keys(rows, keys), q.from(i), k_transposed, own.scores, stride, false);
    multiply(products, plan.by_keys(rows, keys), dy.from(i), v_transposed, own.slopes, stride, false);
    plan.kernels->slopes(plan.scores(rows, keys), lse + i, own.along + i, own.scores, own.slopes);
    const ProductSize by_rows{keys, plan.width, rows};
    multiply_transposed(products, by_rows, {own.scores, stride}, right_factor(products, dy.from(i)), own.dv, plan.width,
                        i > 0);
    multiply_transposed(products, by_rows, {own.slopes, stride}, right_factor(products, q.from(i)), own.dk, plan.width,
                        i > 0);
    multiply(products, {rows, plan.width, keys}, {own.slopes, stride}, right_factor(products, k),
             own.dq + i * plan.width, plan.width, !first);
  }
}

template <class T>
void run_backward_task(const AttentionPlan& plan, const BackwardTask<T>& task, const BackwardScratch& own) {
  const Attention& s = plan.shape;
  const Rows dy = rows_of(plan, task.dy, s.queries, own.dy), q = rows_of(plan, task.q, s.queries, own.q);
  for (int64_t i = 0; i < s.queries; ++i) {
    const Rows y = rows_of(plan, task.y + i * s.stride(), 1, own.y);
    own.along[i] = plan.products->dot(dy.from(i).data, y.data, s.width);
  }
  if (s.queries == 0) {
    std::fill(own.dk, own.dk + plan.key_block * plan.width, 0.0F);
    std::fill(own.dv, own.dv + plan.key_block * plan.width, 0.0F);
  }
  for (int64_t first = 0; first < s.keys; first += plan.key_block) {
    const int64_t keys = std::min(plan.key_block, s.keys - first), at = first * s.stride();
    const Rows k = rows_of(plan, task.k + at, keys, own.k), v = rows_of(plan, task.v + at, keys, own.v);
    run_key_block(plan, dy, q, k, v, task.lse, keys, first == 0, own);
    write_rows(plan, own.dk, keys, task.dk + at);
    write_rows(plan, own.dv, keys, task.dv + at);
  }
  write_rows(plan, own.dq, s.queries, task.dq);
}

template <class T>
void run_backward(const AttentionPlan& plan, const OpArgs& args) {
  const Attention& s = plan.shape;
  parallel_for(plan.threads, s.samples * s.heads, [&](int64_t i, int thread) {
    const int64_t queries_at = s.queries_at(i / s.heads, i % s.heads), keys_at = s.keys_at(i / s.heads, i % s.heads);
    Scratch scratch(args.workspace<float>() + thread * plan.thread_floats);
    run_backward_task<T>(plan,
                         {.dy = args.in<T>(0) + queries_at,
                          .q = args.in<T>(1) + queries_at,
                          .k = args.in<T>(2) + keys_at,
                          .v = args.in<T>(3) + keys_at,
                          .y = args.in<T>(4) + queries_at,
                          .lse = args.in<float>(5) + i * s.queries,
                          .dq = args.out<T>(0) + queries_at,
                          .dk = args.out<T>(1) + keys_at,
                          .dv = args.out<T>(2) + keys_at},
                         BackwardScratch(plan, scratch));
  });
}

}  // namespace

void add_attention_kernels(plugin::Device& device) {
  add_floating_op(device, GPUNN_OP_ATTENTION, make_plan<ForwardScratch, attention_of>,
                  [](auto x) { return run_forward<decltype(x)>; });
  add_floating_op(device, GPUNN_OP_ATTENTION_BACKWARD, make_plan<BackwardScratch, attention_backward_of>,
                  [](auto x) { return run_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
