#include "step_program.hpp"

#include "cuda_common/check.hpp"
#include "cuda_common/stream.hpp"
#include "step_kernels.hpp"
#include "step_match.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;

StepPlanned plan_of(const StepMatch& match) {
  const int limit = step_shared_limit();
  if (limit == 0) return {std::nullopt, "the GPU has no clusters of blocks"};
  return make_step_plan(match.network, limit);
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
    // The streams of a training don't wait for the one on which that was put.
    cuda::check(cudaStreamSynchronize(cudaStreamLegacy), "waiting for a step's plan");
  }

  void enqueue(Stream& stream, const SubgraphArgs& args) override {
    const auto at = [&]<class T>(int32_t id, T* /*type*/) { return id < 0 ? nullptr : args.data<T>(id); };
    StepTensors tensors{};
    tensors.data = args.data<char>(values_.data);
    tensors.labels = args.data<char>(values_.labels);
    tensors.scale = args.data<float>(values_.scale);
    tensors.shift = args.data<float>(values_.shift);
    tensors.step = args.data<int64_t>(values_.step);
    tensors.rate_table = args.data<float>(values_.rate_table);
    tensors.parameters = args.data<float>(values_.parameters);
    tensors.state1 = at(values_.state1, static_cast<float*>(nullptr));
    tensors.state2 = at(values_.state2, static_cast<float*>(nullptr));
    tensors.totals = at(values_.totals, static_cast<double*>(nullptr));
    tensors.history = at(values_.history, static_cast<float*>(nullptr));
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
  const StepMatch match = match_step(desc, first, limit);
  if (match.ops == 0) return SubgraphSupport::no(match.reason);
  const StepPlanned planned = plan_of(match);
  if (!planned.plan) return SubgraphSupport::no(planned.refusal);
  return SubgraphSupport::yes(match.ops, "fused training step", planned.plan->workspace_bytes);
}

std::unique_ptr<Subgraph> create_step(const ProgramDesc& desc, std::size_t first, std::size_t count) {
  const StepMatch match = match_step(desc, first, count);
  const StepPlanned planned = match.ops == count ? plan_of(match) : StepPlanned{};
  if (!planned.plan) throw Failure(GPUNN_INVALID_ARGUMENT, "not a step that was fused");
  return std::make_unique<StepSubgraph>(*planned.plan, match.values);
}

}  // namespace gpunn::cuda_tiled
