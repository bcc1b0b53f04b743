// CONV2D, its gradients, CONV2D_BIAS_ACTIVATION and CONV2D_BIAS_ADD_ACTIVATION through cuDNN's graph API.
#include "common/convolution.hpp"

#include <gpunn/kernel.hpp>
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "add_bias.hpp"
#include "convolution_graph.hpp"
#include "cuda_common/add_tuned_op.hpp"
#include "cuda_common/check.hpp"
#include "cudnn_check.hpp"
#include "device.hpp"
#include "engines.hpp"
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

constexpr std::size_t kMostFusedPlans = 10;
constexpr std::size_t kMostPlans = 10;

struct ConvolutionProblem {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionShape shape{};
  bool bias = false;
  bool residual = false;
  bool relu = false;
  int32_t dtype = GPUNN_F32;
  int32_t precision = GPUNN_PRECISION_FP32;
  bool channels_last = false;
  // Room for a copy of the residual, which y may overwrite: cuDNN promises nothing of tensors that share memory.
  uint64_t copy_bytes = 0;
  uint64_t workspace_bytes = 0;  // of the copy and of cuDNN
  // cuDNN's engines on tensor cores read channels-last images; to packed ones they convert, each time.
  int score() const { return channels_last && ops::is_half(dtype) ? 2 : 1; }

  Epilogue epilogue() const {
    if (!bias) return Epilogue::none;
    if (residual) return relu ? Epilogue::bias_add_relu : Epilogue::bias_add;
    return relu ? Epilogue::bias_relu : Epilogue::bias;
  }
  EngineRules rules() const {
    // BF16 may round products further than TF32 does, but need not.
    return {.tensor_cores = ops::is_half(dtype) || precision != GPUNN_PRECISION_FP32,
            .workspace_bytes = workspace_bytes - copy_bytes};
  }
};

double elements_of(const gpunn_tensor& tensor) { return static_cast<double>(plugin::element_count(tensor)); }

// Room for a copy of every tensor in the layout that the engine likes, and for partial sums.
uint64_t workspace_limit(const OpDesc& desc) {
  constexpr double kLeast = 1 << 20;
  constexpr double kMost = 256.0 * (1 << 20);
  const double elements = elements_of(desc.input(0)) + elements_of(desc.input(1)) + elements_of(desc.output(0));
  return static_cast<uint64_t>(std::clamp(2 * sizeof(float) * elements, kLeast, kMost)) / 256 * 256;
}

// cuDNN counts in 32 bits, also the bytes of a tensor in some engines.
void require_small(const gpunn_tensor& tensor) {
  require(elements_of(tensor) <= std::numeric_limits<int32_t>::max() / 4.0,
          "a tensor is larger than cuDNN's 2^31 bytes");
}

ConvolutionProblem make_problem(const OpDesc& desc, ConvolutionPass pass, const ConvolutionShape& shape) {
  for (const gpunn_tensor* tensor : {&desc.input(0), &desc.input(1), &desc.output(0)}) require_small(*tensor);
  return {.pass = pass,
          .shape = shape,
          .dtype = desc.input(0).dtype,
          .precision = desc.precision(),
          .channels_last = plugin::has_channels_last(desc),
          .workspace_bytes = workspace_limit(desc)};
}

// Where there are few channels, cuDNN's engines in fp32 leave most of the GPU idle: on an H200, for 5x5 taps, 6 to 16
// channels, 512 images of 12x12, the best take 18.9, 38.0 and 42.9 us (forward, data and weight gradient), and the
// base's kernels 8.0, 9.6 and 10.9.
void require_channels(const ConvolutionShape& shape) {
  require(!has_few_channels(shape), "of few channels: the base's kernel is faster");
}

ConvolutionProblem forward_problem(const OpDesc& desc) {
  const ConvolutionShape shape = convolution_of(desc);
  require_channels(shape);
  return make_problem(desc, ConvolutionPass::forward, shape);
}

ConvolutionProblem bias_activation_problem(const OpDesc& desc) {
  const ConvolutionBiasActivation op = convolution_bias_activation_of(desc);
  require_channels(op.shape);
  ConvolutionProblem problem = make_problem(desc, ConvolutionPass::forward, op.shape);
  problem.bias = true;
  problem.relu = op.relu;
  return problem;
}

ConvolutionProblem bias_add_activation_problem(const OpDesc& desc) {
  ConvolutionProblem problem = bias_activation_problem(desc);
  problem.residual = true;
  problem.copy_bytes = (plugin::element_count(desc.output(0)) * sizeof(float) + 255) / 256 * 256;
  problem.workspace_bytes += problem.copy_bytes;
  return problem;
}

ConvolutionProblem backward_data_problem(const OpDesc& desc) {
  const ConvolutionShape shape = convolution_backward_data_of(desc);
  require_channels(shape);
  return make_problem(desc, ConvolutionPass::backward_data, shape);
}

ConvolutionProblem backward_filter_problem(const OpDesc& desc) {
  const ConvolutionShape shape = convolution_backward_filter_of(desc);
  require_channels(shape);
  return make_problem(desc, ConvolutionPass::backward_filter, shape);
}

// The addresses of x, w, y, the bias and the residual in an op's arguments, whatever their order there.
struct Addresses {
  const void* x;
  const void* w;
  const void* y;
  const void* bias;
  const void* residual;

  bool operator==(const Addresses&) const = default;
};

Addresses addresses_of(ConvolutionPass pass, bool bias, const OpArgs& args) {
  switch (pass) {
    case ConvolutionPass::backward_data:  // dy, w -> dx
      return {args.out<void>(0), args.in<void>(1), args.in<void>(0), nullptr, nullptr};
    case ConvolutionPass::backward_filter:  // dy, x -> dw
      return {args.in<void>(1), args.out<void>(0), args.in<void>(0), nullptr, nullptr};
    case ConvolutionPass::forward:  // x, w (, bias) -> y
      break;
  }
  return {args.in<void>(0), args.in<void>(1), args.out<void>(0), bias ? args.in<void>(2) : nullptr, nullptr};
}

// One plan of cuDNN, with bias and activation in it or in a kernel of our own after it.
class Convolution final : public Algorithm {
 public:
  Convolution(cudnnHandle_t handle, const ConvolutionProblem& problem, std::shared_ptr<const OperationGraph> graph,
              bool fused, ExecutionPlan plan)
      : handle_(handle), problem_(problem), graph_(std::move(graph)), fused_(fused), plan_(std::move(plan)) {}

  std::string name() const override { return (fused_ ? kFused : kPlain) + plan_.name; }
  uint64_t workspace_bytes() const override { return problem_.copy_bytes + plan_.workspace_bytes; }

  void run(const OpArgs& args, cudaStream_t stream) override {
    Addresses addresses = addresses_of(problem_.pass, fused_, args);
    const float* const residual = problem_.residual ? kept_residual(args, stream) : nullptr;
    if (fused_) addresses.residual = residual;
    void* const workspace = args.workspace<char>() + problem_.copy_bytes;
    if (!pack_ || addresses != addresses_ || workspace != workspace_) {
      pack_ = std::make_unique<Descriptor>(make_pack(addresses, workspace));
      addresses_ = addresses;
      workspace_ = workspace;
    }
    check(cudnnSetStream(handle_, stream), "giving cuDNN the stream");
    check(cudnnBackendExecute(handle_, plan_.plan.get(), pack_->get()), "running cuDNN's convolution");
    if (!problem_.bias || fused_) return;
    const ConvolutionShape& shape = problem_.shape;
    // Channels-last images are a matrix with a row a pixel.
    int64_t rows = shape.batch;
    int64_t size = shape.rows.outputs * shape.columns.outputs;
    if (problem_.channels_last) rows *= std::exchange(size, 1);
    add_bias(args.out<float>(0), args.in<float>(2), residual, rows, shape.groups * shape.group_outputs, size,
             problem_.relu, stream);
  }

 private:
  // The residual, or a copy of it where y has its memory.
  static const float* kept_residual(const OpArgs& args, cudaStream_t stream) {
    const auto* const residual = args.in<float>(3);
    if (residual != args.out<float>(0)) return residual;
    auto* const copy = args.workspace<float>();
    const auto bytes = static_cast<std::size_t>(plugin::element_count(args.output(0))) * sizeof(float);
    cuda::check(cudaMemcpyAsync(copy, residual, bytes, cudaMemcpyDeviceToDevice, stream), "copying the residual");
    return copy;
  }

  Descriptor make_pack(const Addresses& addresses, void* workspace) const {
    std::array<int64_t, 5> ids{kImages, kFilters, kResults, kBias, kResidual};
    std::array<const void*, 5> data{addresses.x, addresses.w, addresses.y, addresses.bias, addresses.residual};
    const int64_t count = !fused_ ? 3 : problem_.residual ? 5 : 4;
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack.finalize();
    return pack;
  }

  cudnnHandle_t handle_;
  ConvolutionProblem problem_;
  std::shared_ptr<const OperationGraph> graph_;
  bool fused_;
  ExecutionPlan plan_;
  // Of the last run; a kernel's tensors rarely move.
  std::unique_ptr<Descriptor> pack_;
  Addresses addresses_{};
  void* workspace_ = nullptr;
};

std::shared_ptr<const OperationGraph> make_graph(const Target& target, const ConvolutionProblem& problem, bool fused) {
  return std::make_shared<const OperationGraph>(
      convolution_graph(target, problem.pass, problem.shape, fused ? problem.epilogue() : Epilogue::none,
                        {.dtype = problem.dtype, .channels_last = problem.channels_last}));
}

void add_algorithms(const Target& target, const ConvolutionProblem& problem, bool fused, std::size_t most,
                    std::vector<AlgorithmPtr>& algorithms) {
  const auto graph = make_graph(target, problem, fused);
  for (ExecutionPlan& plan : execution_plans(target, *graph, problem.rules(), most)) {
    algorithms.push_back(std::make_unique<Convolution>(target.handle, problem, graph, fused, std::move(plan)));
  }
}

Candidates candidates(const Target& target, const ConvolutionProblem& problem) {
  Candidates found;
  if (problem.bias) {
    try {
      add_algorithms(target, problem, true, kMostFusedPlans, found.algorithms);
    } catch (const plugin::Failure& failure) {
      // What can't be fused is done in two kernels.
      if (failure.status() != GPUNN_UNSUPPORTED) throw;
    }
  }
  found.first_trusted = found.algorithms.size();
  add_algorithms(target, problem, false, kMostPlans, found.algorithms);
  return found;
}

AlgorithmPtr restore(const Target& target, const ConvolutionProblem& problem, const std::string& name) {
  const bool fused = name.starts_with(kFused);
  require(fused ? problem.bias : name.starts_with(kPlain), "not an engine of cuDNN");
  auto graph = make_graph(target, problem, fused);
  ExecutionPlan plan = execution_plan(target, *graph, problem.rules(), name.substr(std::string_view(kFused).size()));
  return std::make_unique<Convolution>(target.handle, problem, std::move(graph), fused, std::move(plan));
}

std::string key_of(const ConvolutionProblem& problem) {
  return text_of(problem.pass, {.bias = problem.bias, .residual = problem.residual, .relu = problem.relu}) + " " +
         text_of(problem.shape) + " " +
         (ops::is_half(problem.dtype) ? ops::dtype_text(problem.dtype) + " tensors"
                                      : precision_name(problem.precision)) +
         (problem.channels_last ? " channels-last" : "");
}

TuningTask convolution_task(CudnnDevice& device, const ConvolutionProblem& problem) {
  const Target target{.handle = device.cudnn_handle(), .properties = nullptr};
  return {.key = key_of(problem),
          .terms = terms_of(problem.pass, problem.shape),
          .nan_input = problem.bias ? 2 : -1,
          .candidates = [=] { return candidates(target, problem); },
          .restore = [=](const std::string& name) { return restore(target, problem, name); }};
}

}  // namespace

void add_convolution_kernels(CudnnDevice& device) {
  add_tuned_op(device, GPUNN_OP_CONV2D, "conv2d", forward_problem, convolution_task, Dtypes::floating,
               Layouts::channels_last_too);
  add_tuned_op(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, "conv2d_bias_activation", bias_activation_problem,
               convolution_task, Dtypes::f32, Layouts::channels_last_too);
  add_tuned_op(device, GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION, "conv2d_bias_add_activation", bias_add_activation_problem,
               convolution_task, Dtypes::f32, Layouts::channels_last_too);
  add_tuned_op(device, GPUNN_OP_CONV2D_BACKWARD_DATA, "conv2d_backward_data", backward_data_problem, convolution_task,
               Dtypes::floating, Layouts::channels_last_too);
  add_tuned_op(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, "conv2d_backward_filter", backward_filter_problem,
               convolution_task, Dtypes::floating, Layouts::channels_last_too);
}

}  // namespace gpunn::cudnn
