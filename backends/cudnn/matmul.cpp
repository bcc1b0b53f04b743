// MATMUL and MATMUL_BIAS_ACTIVATION through cuBLASLt.
//
// cuBLASLt's matrices are column-major. There the row-major product y[m,n] = op(a) op(b) reads y^T = op(b)^T op(a)^T.
// So cuBLASLt's A is b here, its B is a, and its D is y with n rows. Its bias has one number for each row of D, which
// matches the bias [n].
#include "common/matmul.hpp"

#include <gpunn/kernel.hpp>
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>

#include "add_bias.hpp"
#include "cublaslt.hpp"
#include "cuda_common/add_tuned_op.hpp"
#include "device.hpp"
#include "kernels.hpp"

namespace gpunn::cudnn {
namespace {

using namespace backends;
using cuda::add_tuned_op;
using cuda::Algorithm;
using cuda::AlgorithmPtr;
using cuda::Candidates;
using cuda::precision_name;
using cuda::TuningTask;

constexpr int64_t kLargestSize = std::numeric_limits<int32_t>::max();
constexpr int kMostAlgorithms = 16;

struct MatmulProblem {
  Matmul shape;
  bool bias = false;
  int32_t dtype = GPUNN_F32;
  int32_t precision = GPUNN_PRECISION_FP32;
  uint64_t workspace_bytes = 0;
};

// Room for the partial sums of eight parts of k, and for the counters of small products; at most what NVIDIA recommends
// for this generation.
uint64_t workspace_limit(const Matmul& shape) {
  constexpr uint64_t kLeast = uint64_t{1} << 20U;
  constexpr uint64_t kMost = uint64_t{32} << 20U;
  constexpr double kParts = 8;
  const double wanted = kParts * sizeof(float) * static_cast<double>(shape.m) * static_cast<double>(shape.n);
  return wanted >= static_cast<double>(kMost) ? kMost : std::max(kLeast, static_cast<uint64_t>(wanted));
}

MatmulProblem make_problem(const OpDesc& desc, const Matmul& shape, bool bias) {
  require(shape.m > 0 && shape.n > 0 && shape.k > 0, "cuBLASLt does not multiply empty matrices");
  require(shape.m <= kLargestSize && shape.n <= kLargestSize && shape.k <= kLargestSize,
          "a size is beyond cuBLASLt's 2^31 - 1");
  return {.shape = shape,
          .bias = bias,
          .dtype = desc.input(0).dtype,
          .precision = desc.precision(),
          .workspace_bytes = workspace_limit(shape)};
}

MatmulProblem matmul_problem(const OpDesc& desc) { return make_problem(desc, matmul_of(desc), false); }

MatmulProblem matmul_bias_activation_problem(const OpDesc& desc) {
  return make_problem(desc, matmul_bias_activation_of(desc), true);
}

cudaDataType_t cuda_type_of(int32_t dtype) {
  switch (dtype) {
    case GPUNN_BF16:
      return CUDA_R_16BF;
    case GPUNN_F16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(const MatmulProblem& problem) {
  if (ops::is_half(problem.dtype)) return CUBLAS_COMPUTE_32F;
  switch (problem.precision) {
    case GPUNN_PRECISION_TF32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case GPUNN_PRECISION_BF16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

// An op for cuBLASLt: what is multiplied and what follows in the same kernel.
class LtOperation {
 public:
  LtOperation(const MatmulProblem& problem, bool fused)
      : lt_(cublaslt()), fused_(fused), type_(cuda_type_of(problem.dtype)) {
    const Matmul& shape = problem.shape;
    check(lt_.create_operation(&operation_, compute_type(problem), CUDA_R_32F), "describing a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (fused_) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, shape.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
      // Only its alignment counts before the first run, and that of every tensor is the ABI's.
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, uintptr_t{cuda::CudaDevice::kAlignment});
    }
    // Each matrix as it lies in memory: a row of ours is a column.
    make_layout(a_, shape.transpose_b ? shape.k : shape.n, shape.transpose_b ? shape.n : shape.k);
    make_layout(b_, shape.transpose_a ? shape.m : shape.k, shape.transpose_a ? shape.k : shape.m);
    make_layout(d_, shape.n, shape.m);
  }
  ~LtOperation() {
    for (auto* layout : {a_, b_, d_}) {
      if (layout != nullptr) lt_.destroy_layout(layout);
    }
    if (operation_ != nullptr) lt_.destroy_operation(operation_);
  }
  LtOperation(const LtOperation&) = delete;
  LtOperation& operator=(const LtOperation&) = delete;

  bool fused() const { return fused_; }

  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(cublasLtHandle_t handle, uint64_t workspace_bytes) const {
    cublasLtMatmulPreference_t preference = nullptr;
    check(lt_.create_preference(&preference), "describing a preference");
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(lt_.destroy_preference)> owner(
        preference, lt_.destroy_preference);
    check(lt_.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                             sizeof(workspace_bytes)),
          "describing a preference");
    // Parts of k are never added up in half precision.
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (type_ != CUDA_R_32F) {
      check(lt_.set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions)),
            "describing a preference");
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    const cublasStatus_t code =
        lt_.heuristic(handle, operation_, a_, b_, d_, d_, preference, kMostAlgorithms, found.data(), &count);
    if (code == CUBLAS_STATUS_NOT_SUPPORTED)
      count = 0;
    else
      check(code, "asking cuBLASLt for algorithms");
    found.resize(static_cast<std::size_t>(count));
    std::erase_if(found, [&](const cublasLtMatmulHeuristicResult_t& result) {
      return result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace_bytes;
    });
    return found;
  }

  // Throws where the algorithm is none for this op.
  uint64_t workspace_of(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const {
    cublasLtMatmulHeuristicResult_t result{};
    check(lt_.check_algorithm(handle, operation_, a_, b_, d_, d_, &algorithm, &result), "checking an algorithm");
    return result.workspaceSize;
  }

  void run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, uint64_t workspace_bytes, const OpArgs& args,
           cudaStream_t stream) {
    if (fused_) set_bias(args.in<float>(2));
    check(lt_.matmul(handle, operation_, &kOne, args.in<void>(1), a_, args.in<void>(0), b_, &kZero, args.out<void>(0),
                     d_, args.out<void>(0), d_, &algorithm, args.workspace<void>(), workspace_bytes, stream),
          "cublasLtMatmul");
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value) {
    check(lt_.set_operation(operation_, name, &value, sizeof(value)), "describing a product");
  }
  void set_bias(const float* bias) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  void make_layout(cublasLtMatrixLayout_t& layout, int64_t rows, int64_t columns) {
    check(lt_.create_layout(&layout, type_, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
          "describing a matrix");
  }

  const CublasLt& lt_;
  bool fused_;
  cudaDataType_t type_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const uint64_t word : algorithm.data) {
    char digits[2 * sizeof(word)];
    const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), word, 16);
    text += (text.empty() ? "" : " ") + std::string(digits, end);
  }
  return text;
}

cublasLtMatmulAlgo_t parsed(const std::string& text) {
  cublasLtMatmulAlgo_t algorithm{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint64_t& word : algorithm.data) {
    if (&word != algorithm.data) {
      if (at == end || *at != ' ') throw Refusal("not an algorithm of cuBLASLt");
      ++at;
    }
    const auto [next, error] = std::from_chars(at, end, word, 16);
    if (error != std::errc{}) throw Refusal("not an algorithm of cuBLASLt");
    at = next;
  }
  if (at != end) throw Refusal("not an algorithm of cuBLASLt");
  return algorithm;
}

// One algorithm of cuBLASLt, with bias and activation as its epilogue or in a kernel of our own after it.
class LtMatmul final : public Algorithm {
 public:
  LtMatmul(cublasLtHandle_t handle, const MatmulProblem& problem, std::shared_ptr<LtOperation> operation,
           const cublasLtMatmulAlgo_t& algorithm, uint64_t workspace_bytes)
      : handle_(handle),
        problem_(problem),
        operation_(std::move(operation)),
        algorithm_(algorithm),
        workspace_bytes_(workspace_bytes) {}

  std::string name() const override { return (operation_->fused() ? kFused : kPlain) + text_of(algorithm_); }
  uint64_t workspace_bytes() const override { return workspace_bytes_; }
  void run(const OpArgs& args, cudaStream_t stream) override {
    operation_->run(handle_, algorithm_, workspace_bytes_, args, stream);
    if (!problem_.bias || operation_->fused()) return;
    add_bias(args.out<float>(0), args.in<float>(2), nullptr, problem_.shape.m, problem_.shape.n, 1, problem_.shape.relu,
             stream);
  }

 private:
  cublasLtHandle_t handle_;
  MatmulProblem problem_;
  std::shared_ptr<LtOperation> operation_;
  cublasLtMatmulAlgo_t algorithm_;
  uint64_t workspace_bytes_;
};

void add_algorithms(cublasLtHandle_t handle, const MatmulProblem& problem, bool fused,
                    std::vector<AlgorithmPtr>& algorithms) {
  const auto operation = std::make_shared<LtOperation>(problem, fused);
  for (const cublasLtMatmulHeuristicResult_t& found : operation->algorithms(handle, problem.workspace_bytes)) {
    algorithms.push_back(
        std::make_unique<LtMatmul>(handle, problem, operation, found.algo, uint64_t{found.workspaceSize}));
  }
}

Candidates candidates(cublasLtHandle_t handle, const MatmulProblem& problem) {
  Candidates found;
  if (problem.bias) add_algorithms(handle, problem, true, found.algorithms);
  found.first_trusted = found.algorithms.size();
  add_algorithms(handle, problem, false, found.algorithms);
  return found;
}

AlgorithmPtr restore(cublasLtHandle_t handle, const MatmulProblem& problem, const std::string& name) {
  const bool fused = name.starts_with(kFused);
  require(fused ? problem.bias : name.starts_with(kPlain), "not an algorithm of cuBLASLt");
  const cublasLtMatmulAlgo_t algorithm = parsed(name.substr(std::string_view(kFused).size()));
  auto operation = std::make_shared<LtOperation>(problem, fused);
  const uint64_t workspace_bytes = operation->workspace_of(handle, algorithm);
  require(workspace_bytes <= problem.workspace_bytes, "the algorithm needs more memory than the limit");
  return std::make_unique<LtMatmul>(handle, problem, std::move(operation), algorithm, workspace_bytes);
}

std::string key_of(const MatmulProblem& problem) {
  const Matmul& shape = problem.shape;
  std::string key = problem.bias ? shape.relu ? "matmul_bias_relu" : "matmul_bias" : "matmul";
  key += " m=" + std::to_string(shape.m) + " n=" + std::to_string(shape.n) + " k=" + std::to_string(shape.k);
  key += std::string(" ") + (shape.transpose_a ? "t" : "n") + (shape.transpose_b ? "t" : "n");
  if (ops::is_half(problem.dtype)) return key + " " + ops::dtype_text(problem.dtype) + " tensors";
  return key + " " + precision_name(problem.precision);
}

TuningTask matmul_task(CudnnDevice& device, const MatmulProblem& problem) {
  cublasLtHandle_t handle = device.cublaslt_handle();
  return {.key = key_of(problem),
          .terms = problem.shape.k,
          .nan_input = problem.bias ? 2 : -1,
          .candidates = [=] { return candidates(handle, problem); },
          .restore = [=](const std::string& name) { return restore(handle, problem, name); }};
}

}  // namespace

void add_matmul_kernels(CudnnDevice& device) {
  add_tuned_op(device, GPUNN_OP_MATMUL, "matmul", matmul_problem, matmul_task, Dtypes::floating);
  add_tuned_op(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, "matmul_bias_activation", matmul_bias_activation_problem,
               matmul_task);
}

}  // namespace gpunn::cudnn
