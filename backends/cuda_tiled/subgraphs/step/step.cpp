#include "subgraphs/step/step.hpp"

#include <optional>
#include <type_traits>

#include "cuda_common/check.hpp"
#include "cuda_common/peer_memory.hpp"
#include "cuda_common/stream.hpp"
#include "subgraphs/step/kernels.hpp"
#include "subgraphs/step/query.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;

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

// The memory through which ranks exchange gradients, and a word that says whether one of them is lost.
class RankWords {
 public:
  RankWords(cuda::PeerGroup& group, const StepPlan& plan)
      : group_(group), arena_(group, peer_bytes(plan)), stopped_(sizeof(uint32_t)) {
    cuda::check(cudaMemset(stopped_.get<void>(), 0, sizeof(uint32_t)), "clearing a flag");
    words_ = {.of = {},
              .stop = group.stop(),
              .stopped = stopped_.get<uint32_t>(),
              .rank = group.rank(),
              .world = group.world(),
              .words = plan.words};
    for (int rank = 0; rank < group.world(); ++rank) words_.of[rank] = static_cast<uint64_t*>(arena_.of(rank));
  }
  const PeerWords& words() const {
    group_.throw_if_lost();
    return words_;
  }

 private:
  cuda::PeerGroup& group_;
  cuda::PeerArena arena_;
  Memory stopped_;
  PeerWords words_{};
};

class StepSubgraph final : public Subgraph {
 public:
  StepSubgraph(const StepPlan& plan, const StepValues& values, cuda::PeerGroup* group)
      : plan_(plan), values_(values), plan_memory_(sizeof(plan)), noted_memory_(noted_bytes(plan)) {
    if (plan.world > 1 && group->options().can_exchange()) ranks_.emplace(*group, plan);
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
    RankTensors tensors{};
    tensors.data = values_.data < 0 ? nullptr : args.data<char>(values_.data);
    tensors.labels = values_.labels < 0 ? nullptr : args.data<char>(values_.labels);
    at(values_.scale, tensors.scale);
    at(values_.shift, tensors.shift);
    at(values_.step, tensors.step);
    at(values_.pass, tensors.pass);
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
    if (plan_.world > 1) {
      if (!ranks_) {
        throw Failure(GPUNN_INVALID_ARGUMENT, "a step that was planned for several ranks can't be run by one");
      }
      tensors.peers = ranks_->words();
    }
    launch_step(plan_, tensors, cuda::native(stream));
  }

 private:
  StepPlan plan_;
  StepValues values_;
  Memory plan_memory_;
  Memory noted_memory_;
  std::optional<RankWords> ranks_;
};

// For the current device.
StepPlanner planner() { return {.limits = step_limits(), .is_resident = step_is_resident}; }

int world_of(const cuda::PeerGroup* group) { return group == nullptr ? 1 : group->world(); }

}  // namespace

SubgraphSupport query_step(const cuda::PeerGroup* group, const ProgramDesc& desc, std::size_t first,
                           std::size_t limit) {
  return query_step(planner(), world_of(group), desc, first, limit);
}

std::unique_ptr<Subgraph> create_step(cuda::PeerGroup* group, const ProgramDesc& desc, std::size_t first,
                                      std::size_t count) {
  for (const int world : {world_of(group), 1}) {
    const StepMatch match = match_step(desc, first, count, world);
    const StepPlanned planned = match.ops.size() == count ? planner()(match) : StepPlanned{};
    if (planned.plan) return std::make_unique<StepSubgraph>(*planned.plan, match.values, group);
  }
  throw Failure(GPUNN_INVALID_ARGUMENT, "not a step that was fused");
}

}  // namespace gpunn::cuda_tiled
