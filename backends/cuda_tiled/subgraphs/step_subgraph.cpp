#include "step_subgraph.hpp"

#include <type_traits>
#include <utility>

#include "cuda_common/check.hpp"
#include "cuda_common/stream.hpp"
#include "step_kernels.hpp"
#include "step_match.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;

StepPlanned plan_of(const StepMatch& match) {
  const StepLimits limits = step_limits();
  if (limits.shared == 0) return {std::nullopt, "the GPU has no clusters of blocks"};
  StepPlanned planned = make_step_plan(match.network, limits);
  if (planned.plan && !step_is_resident(*planned.plan)) {
    return {std::nullopt, "batch norm over more images than the GPU has at once"};
  }
  return planned;
}

// Device memory.
class Memory {
 public:
  explicit Memory(std::size_t bytes) { cuda::check(cudaMalloc(&data_, bytes), "cudaMalloc of a step's plan"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }

  template <class T>
  T* get() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

class StepSubgraph final : public Subgraph {
 public:
  StepSubgraph(const StepPlan& plan, const StepValues& values)
      : plan_(plan), values_(values), plan_memory_(sizeof(plan)), noted_memory_(noted_bytes(plan)) {
    cuda::check(cudaMemcpy(plan_memory_.get<void>(), &plan_, sizeof(plan_), cudaMemcpyHostToDevice),
                "copying a step's plan");
    // No step has this number.
    cuda::check(cudaMemset(noted_memory_.get<void>(), 0xFF, noted_bytes(plan)), "clearing the batches to come");
    cuda::check(cudaMemset(&noted_memory_.get<NotedBatches>()->runs, 0, sizeof(uint32_t)), "clearing the runs");
    // The streams of a training don't wait for the one on which that was put.
    cuda::check(cudaStreamSynchronize(cudaStreamLegacy), "waiting for a step's plan");
  }

  void enqueue(Stream& stream, const SubgraphArgs& args) override {
    const auto at = [&]<class T>(int32_t id, T*& to) { to = id < 0 ? nullptr : args.data<std::remove_const_t<T>>(id); };
    const auto flat = [&](const FlatBase& base, float*& to) {
      to = base.id < 0 ? nullptr : reinterpret_cast<float*>(args.data<char>(base.id) - base.offset);
    };
    GeneralTensors tensors{};
    tensors.data = values_.data < 0 ? nullptr : args.data<char>(values_.data);
    tensors.labels = values_.labels < 0 ? nullptr : args.data<char>(values_.labels);
    at(values_.scale, tensors.scale);
    at(values_.shift, tensors.shift);
    at(values_.step, tensors.step);
    at(values_.rate_table, tensors.rate_table);
    flat(values_.parameters, tensors.parameters);
    flat(values_.gradients, tensors.gradients);
    flat(values_.state1, tensors.state1);
    flat(values_.state2, tensors.state2);
    at(values_.totals, tensors.totals);
    at(values_.history, tensors.history);
    at(values_.x, tensors.x);
    at(values_.count, tensors.count);
    at(values_.targets, tensors.targets);
    at(values_.border, tensors.border);
    at(values_.logits, tensors.logits);
    at(values_.row_losses, tensors.row_losses);
    at(values_.mean_loss, tensors.mean_loss);
    at(values_.norm, tensors.norm);
    at(values_.norm_history, tensors.norm_history);
    for (std::size_t i = 0; i < values_.flat_states.size(); ++i) {
      for (std::size_t j = 0; j < 2; ++j) flat(values_.flat_states[i][j], tensors.flat_state[i][j]);
    }
    for (std::size_t i = 0; i < values_.running.size(); ++i) {
      for (std::size_t j = 0; j < 2; ++j) at(values_.running[i][j], tensors.running[i][j]);
    }
    tensors.workspace = args.workspace<float>();
    tensors.plan = plan_memory_.get<StepPlan>();
    tensors.noted = noted_memory_.get<NotedBatches>();
    launch_step(plan_, tensors, cuda::native(stream));
  }

 private:
  StepPlan plan_;
  StepValues values_;
  Memory plan_memory_;
  Memory noted_memory_;
};

}  // namespace

SubgraphSupport query_step(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  StepMatch match = match_step(desc, first, limit);
  if (match.ops.empty()) return SubgraphSupport::no(match.reason);
  const StepPlanned planned = plan_of(match);
  if (!planned.plan) return SubgraphSupport::no(planned.refusal);
  return SubgraphSupport::yes(std::move(match.ops), "fused training step", planned.plan->workspace_bytes);
}

std::unique_ptr<Subgraph> create_step(const ProgramDesc& desc, std::size_t first, std::size_t count) {
  const StepMatch match = match_step(desc, first, count);
  const StepPlanned planned = match.ops.size() == count ? plan_of(match) : StepPlanned{};
  if (!planned.plan) throw Failure(GPUNN_INVALID_ARGUMENT, "not a step that was fused");
  return std::make_unique<StepSubgraph>(*planned.plan, match.values);
}

}  // namespace gpunn::cuda_tiled
