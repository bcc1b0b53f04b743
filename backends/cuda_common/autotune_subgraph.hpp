// The autotuner for fused subgraphs: chooses among ways to run one, by their times on this GPU.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda_common/tuned_device.hpp"

namespace gpunn::cuda {

struct SubgraphCandidate {
  std::string name;  // as an Algorithm's
  std::function<std::unique_ptr<plugin::Subgraph>()> make;
};

struct SubgraphTask {
  std::string key;  // in the tuning cache: what the choice depends on
  uint64_t workspace_bytes = 0;
  std::vector<SubgraphCandidate> candidates;  // at least one; all give right results
};

// The candidate that the cache names. Without an entry they are timed on random data in separate memory, and the
// fastest is returned. If the program must be deterministic, or memory for the trial is lacking, the first is.
std::unique_ptr<plugin::Subgraph> choose_subgraph(TunedDevice& device, const plugin::ProgramDesc& desc,
                                                  std::size_t first, std::size_t count, const SubgraphTask& task);

}  // namespace gpunn::cuda
