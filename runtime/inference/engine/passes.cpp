#include "inference/engine/passes.hpp"

#include <gpunn/engine.hpp>
#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <vector>

#include "common/text.hpp"

namespace gpunn {

const std::vector<EnginePass>& engine_passes() {
  static const std::vector<EnginePass> passes = {
      {"fold_batch_norm", "batch norms go into the weights of the convolution or dense layer in front"},
      {"eight_bits", "convolutions, dense layers and what lies between `quantize` layers run on numbers of eight bits"},
      {"remove_dead_ops", "ops go whose results nothing reads"},
      {"fuse", "bias, residual sum and ReLU go into the convolution or product in front"},
      {"layout", "images lie channels-last where the kernels are faster so"},
      {"fold_constants", "ops that read weights alone run once, when the model is loaded"},
      {"in_place", "results take over the memory of inputs that are read no more, or lie in the outputs at once"},
  };
  return passes;
}

namespace inference {

EnginePasses passes_without(std::span<const std::string> names) {
  EnginePasses passes;
  const std::vector<EnginePass>& all = engine_passes();
  for (const std::string& name : names) {
    const auto found = std::ranges::find(all, name, &EnginePass::name);
    if (found == all.end()) {
      std::vector<std::string> known;
      for (const EnginePass& pass : all) known.push_back(pass.name);
      throw Error("there is no engine pass " + in_quotes(name) + did_you_mean_or_list(name, known), ExitCode::usage);
    }
    passes.leave_out(static_cast<EnginePassId>(found - all.begin()));
  }
  return passes;
}

}  // namespace inference

}  // namespace gpunn
