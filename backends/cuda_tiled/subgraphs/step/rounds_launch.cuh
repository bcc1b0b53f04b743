// Launches the kernels of a large batch. rounds.cu and rounds_general.cu have the instances.
#pragma once

#include "launch.hpp"
#include "shared_memory.hpp"
#include "subgraphs/step/launch.cuh"
#include "subgraphs/step/rounds_dense.cuh"

namespace gpunn::cuda_tiled {

template <int IMAGES>
struct DenseRound : StepBlock<IMAGES, kDenseRoundThreads, 1, kDenseRoundThreads> {
  static constexpr bool kRounds = true;
};

template <class B>
void launch_block(void (*kernel)(TensorsOf<B>), int blocks, int bytes, const GeneralTensors& tensors,
                  cudaStream_t stream) {
  allow_shared_memory(kernel, static_cast<std::size_t>(bytes));
  prefer_shared_memory(kernel);
  launch_with(kernel, {dim3(static_cast<unsigned>(blocks)), dim3(B::kThreads), static_cast<unsigned>(bytes)},
              {.early = true}, stream, tensors);
}

// Calls launch(columns) with those of all filters, known when it is compiled.
template <class Launch>
void with_columns(const StepPlan& plan, Launch launch) {
  if (plan.columns == 5) return launch(std::integral_constant<int, 5>{});
  if (plan.columns == 3) return launch(std::integral_constant<int, 3>{});
  launch(std::integral_constant<int, kAnyColumns>{});
}

template <unsigned PARTS>
void launch_rounds_with(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream) {
  if (plan.n_convs > 0) {
    with_columns(plan, [&]<int COLUMNS>(std::integral_constant<int, COLUMNS>) {
      using Code = StepCode<ForwardRounds, COLUMNS, PARTS>;
      launch_block<Code>(rounds_forward<Code>, plan.forward_blocks, plan.shared_bytes, tensors, stream);
    });
  }
  const auto launch_dense = [&]<int IMAGES>(std::integral_constant<int, IMAGES>) {
    using Code = StepCode<DenseRound<IMAGES>, kNoFilters, PARTS>;
    launch_block<Code>(rounds_dense<Code>, plan.pass_blocks, plan.dense_bytes, tensors, stream);
  };
  if (plan.rounds == kDenseRoundImages[0]) {
    launch_dense(std::integral_constant<int, kDenseRoundImages[0]>{});
  } else if (plan.rounds == kDenseRoundImages[1]) {
    launch_dense(std::integral_constant<int, kDenseRoundImages[1]>{});
  } else {
    launch_dense(std::integral_constant<int, kDenseRoundImages[2]>{});
  }
  if (plan.n_convs == 0) return;
  with_columns(plan, [&]<int COLUMNS>(std::integral_constant<int, COLUMNS>) {
    using Code = StepCode<BackwardRounds, COLUMNS, PARTS>;
    launch_block<Code>(rounds_backward<Code>, plan.backward_blocks, plan.backward_bytes, tensors, stream);
  });
}

}  // namespace gpunn::cuda_tiled
