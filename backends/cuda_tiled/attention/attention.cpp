// The variants of ATTENTION and ATTENTION_BACKWARD.
#include "attention/attention.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "architecture.hpp"
#include "kernels.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

namespace {

AttentionProblem problem_of(const OpDesc& desc, const Attention& shape, bool backward) {
  return {.shape = shape,
          .dtype = desc.input(0).dtype,
          .precision = desc.precision(),
          .backward = backward,
          .terms = std::max({shape.queries, shape.keys, shape.width})};
}

AttentionProblem attention_problem(const OpDesc& desc) { return problem_of(desc, attention_of(desc), false); }
AttentionProblem backward_problem(const OpDesc& desc) { return problem_of(desc, attention_backward_of(desc), true); }

std::string key_of(const AttentionProblem& problem) {
  const Attention& s = problem.shape;
  std::string key = problem.backward ? "attention_backward" : "attention";
  const std::pair<const char*, int64_t> sizes[] = {
      {" n ", s.samples}, {" t ", s.queries}, {" s ", s.keys}, {" h ", s.heads}, {" d ", s.width}};
  for (const auto& [name, size] : sizes) key += name + std::to_string(size);
  switch (problem.dtype) {
    case GPUNN_BF16:
      return key + " bf16";
    case GPUNN_F16:
      return key + " f16";
    default:
      return key + (problem.precision == GPUNN_PRECISION_FP32 ? " fp32" : " tf32");
  }
}

std::string shape_refuses(const AttentionProblem& problem, int shared_bytes) {
  constexpr int64_t kMost = int64_t{1} << 30U, kMostBlocks = std::numeric_limits<int32_t>::max();
  const Attention& s = problem.shape;
  if (s.width > kMostAttentionWidth) return "heads are wider than " + std::to_string(kMostAttentionWidth);
  if (problem.heads() == 0 || s.queries == 0) return "there are no queries";
  if (s.queries > kMost || s.keys > kMost || problem.heads() > kMostBlocks / std::max(s.queries, s.keys)) {
    return "there are too many queries or keys";
  }
  if (shared_memory_of_block() < shared_bytes) return "the GPU has too little shared memory";
  return {};
}

std::string fma_refuses(const AttentionProblem& problem) {
  if (problem.dtype != GPUNN_F32) return "the tensors are not f32";
  return shape_refuses(problem, attention_shared_bytes_fma(problem));
}

std::string mma_sync_refuses(const AttentionProblem& problem) {
  constexpr int kAmpere = 80;
  const bool f32 = problem.dtype == GPUNN_F32;
  if (f32 && problem.precision == GPUNN_PRECISION_FP32) return "the precision is fp32";
  if (compute_capability() < kAmpere) return "the GPU is older than compute capability 8.0";
  return shape_refuses(problem, f32 ? attention_shared_bytes_tf32(problem) : attention_shared_bytes_half(problem));
}

void run_mma_sync(const AttentionProblem& problem, cudaStream_t stream, const OpArgs& args) {
  switch (problem.dtype) {
    case GPUNN_BF16:
      return attention_bf16(problem, stream, args);
    case GPUNN_F16:
      return attention_f16(problem, stream, args);
    default:
      return attention_tf32(problem, stream, args);
  }
}

// The sums of dy y by row.
uint64_t workspace_of(const AttentionProblem& problem) {
  if (!problem.backward) return 0;
  return static_cast<uint64_t>(problem.heads()) * static_cast<uint64_t>(problem.shape.queries) * sizeof(float);
}

std::vector<Variant<AttentionProblem>> attention_variants() {
  return {
      {.name = "attention:mma_sync", .refuses = mma_sync_refuses, .workspace_bytes = workspace_of, .run = run_mma_sync},
      {.name = "attention:fma", .refuses = fma_refuses, .workspace_bytes = workspace_of, .run = attention_fma}};
}

}  // namespace

void add_attention_kernels(TiledDevice& device) {
  add_variants(device, GPUNN_OP_ATTENTION, attention_problem, key_of, attention_variants(), Dtypes::floating);
  add_variants(device, GPUNN_OP_ATTENTION_BACKWARD, backward_problem, key_of, attention_variants(), Dtypes::floating);
}

}  // namespace gpunn::cuda_tiled
