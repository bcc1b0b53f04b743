// How a family registers several kernels for one op: a ladder, whose rungs are numbered from the first that follows
// cuda_naive's to the fastest. It writes
//
//   struct Gemm { ... };                             // the op at its shape, validated; a value
//   Gemm gemm_of(const OpDesc& desc);                // throws Refusal
//   std::string key_of(const Gemm& problem);         // "gemm m 1 n 2 k 3 nn fp32": what the tuning cache calls it
//   add_ladder(device, GPUNN_OP_MATMUL, gemm_of, key_of, {{.name = "gemm:1", ...}, ...});
//
// Each rung can be asked for by its name. Without a name the op is run by the rung that is the fastest on this GPU at
// this shape, among the candidates that serve it. Where no rung serves it, it goes to the base.
#pragma once

#include <gpunn/plugin.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda_common/add_op.hpp"
#include "cuda_common/autotune.hpp"
#include "device.hpp"

namespace gpunn::cuda_tiled {

using namespace cuda;

template <class Problem>
struct Rung {
  const char* name = nullptr;                             // "gemm:3"
  std::string (*refuses)(const Problem&) = nullptr;       // why it can't serve the problem; empty: it does
  uint64_t (*workspace_bytes)(const Problem&) = nullptr;  // none
  void (*run)(const Problem&, cudaStream_t, const OpArgs&) = nullptr;
  bool candidate = true;  // false: run only by its name
  // False: taken only where it agrees with the first candidate that is trusted (autotune.hpp), as one that rounds more.
  bool trusted = true;

  uint64_t workspace_of(const Problem& problem) const {
    return workspace_bytes == nullptr ? 0 : workspace_bytes(problem);
  }
};

// A rung at a problem, for the autotuner.
template <class Problem>
class RungAlgorithm final : public Algorithm {
 public:
  RungAlgorithm(const Rung<Problem>& rung, const Problem& problem) : rung_(rung), problem_(problem) {}
  std::string name() const override { return rung_.name; }
  uint64_t workspace_bytes() const override { return rung_.workspace_of(problem_); }
  void run(const OpArgs& args, cudaStream_t stream) override { rung_.run(problem_, stream, args); }

 private:
  Rung<Problem> rung_;
  Problem problem_;
};

template <class Problem>
struct Ladder {
  std::vector<Rung<Problem>> rungs;

  // Those that serve the problem, in the ladder's order.
  std::vector<Rung<Problem>> candidates(const Problem& problem) const {
    std::vector<Rung<Problem>> found;
    for (const Rung<Problem>& rung : rungs) {
      if (rung.candidate && rung.refuses(problem).empty()) found.push_back(rung);
    }
    return found;
  }

  std::string refusals(const Problem& problem) const {
    std::string text;
    for (const Rung<Problem>& rung : rungs) {
      if (rung.candidate) text += (text.empty() ? "" : "; ") + std::string(rung.name) + ": " + rung.refuses(problem);
    }
    return text;
  }
};

template <class Problem>
Candidates candidates_of(const Ladder<Problem>& ladder, const Problem& problem) {
  Candidates found;
  const std::vector<Rung<Problem>> rungs = ladder.candidates(problem);
  found.first_trusted = rungs.size();
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (rungs[i].trusted) found.first_trusted = std::min(found.first_trusted, i);
    found.algorithms.push_back(std::make_unique<RungAlgorithm<Problem>>(rungs[i], problem));
  }
  return found;
}

template <class Problem>
AlgorithmPtr rung_of(const Ladder<Problem>& ladder, const Problem& problem, const std::string& name) {
  for (const Rung<Problem>& rung : ladder.candidates(problem)) {
    if (rung.name == name) return std::make_unique<RungAlgorithm<Problem>>(rung, problem);
  }
  throw Refusal("there is no kernel " + name + " for this shape");
}

inline std::unique_ptr<plugin::Kernel> kernel_of(AlgorithmPtr chosen) {
  const std::string name = chosen->name();
  return plugin::make_kernel([algorithm = std::move(chosen), name](plugin::Stream& stream, const OpArgs& args) {
    const ProfilerRange range(name.c_str());
    algorithm->run(args, native(stream));
  });
}

// The rung that runs the op of `desc`: the one that the autotuner chooses, who calls the problem by `key`.
template <class Problem>
AlgorithmPtr choose_rung(TiledDevice& device, const OpDesc& desc, const Ladder<Problem>& ladder, const Problem& problem,
                         const std::string& key) {
  const TuningTask task{
      .key = key,
      .terms = problem.terms,
      .nan_input = -1,
      .candidates = [&] { return candidates_of(ladder, problem); },
      .restore = [&](const std::string& name) { return rung_of(ladder, problem, name); },
  };
  return choose_algorithm(device, desc, task);
}

// Registers the rungs of `op`. Of a problem the autotuner needs `terms`, how many products a sum of it has, as a
// member.
template <class Problem>
void add_ladder(TiledDevice& device, int32_t op, Problem (*problem_of)(const OpDesc&),
                std::string (*key_of)(const Problem&), std::vector<Rung<Problem>> rungs) {
  const auto ladder = std::make_shared<const Ladder<Problem>>(Ladder<Problem>{std::move(rungs)});
  plugin::KernelFactory tuned;
  tuned.query = [ladder, problem_of](const OpDesc& desc) {
    return support_of([&] {
      const Problem problem = problem_of(desc);
      const std::vector<Rung<Problem>> serving = ladder->candidates(problem);
      if (serving.empty()) return plugin::Support::no(ladder->refusals(problem));
      uint64_t workspace_bytes = 0;
      for (const Rung<Problem>& rung : serving) {
        workspace_bytes = std::max(workspace_bytes, rung.workspace_of(problem));
      }
      return plugin::Support::yes(workspace_bytes);
    });
  };
  tuned.create = [&device, ladder, problem_of, key_of](const OpDesc& desc) {
    const Problem problem = problem_of(desc);
    return kernel_of(choose_rung(device, desc, *ladder, problem, key_of(problem)));
  };
  device.add(op, std::move(tuned));

  for (const Rung<Problem>& rung : ladder->rungs) {
    plugin::KernelFactory named;
    named.name = rung.name;
    named.only_by_name = true;
    named.query = [rung, problem_of](const OpDesc& desc) {
      return support_of([&] {
        const Problem problem = problem_of(desc);
        const std::string reason = rung.refuses(problem);
        return reason.empty() ? plugin::Support::yes(rung.workspace_of(problem)) : plugin::Support::no(reason);
      });
    };
    named.create = [rung, problem_of](const OpDesc& desc) {
      return kernel_of(std::make_unique<RungAlgorithm<Problem>>(rung, problem_of(desc)));
    };
    device.add(op, std::move(named));
  }
}

}  // namespace gpunn::cuda_tiled
