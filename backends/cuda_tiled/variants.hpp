// Registers several kernel variants for one op. Variants are numbered from the first step beyond cuda_naive's kernel to
// the fastest. A family of ops writes
//
//   struct Gemm { ... };                             // the op at its shape, validated; a value
//   Gemm gemm_of(const OpDesc& desc);                // throws Refusal
//   std::string key_of(const Gemm& problem);         // its key in the tuning cache: "gemm m 1 n 2 k 3 nn fp32"
//   add_variants(device, GPUNN_OP_MATMUL, gemm_of, key_of, {{.name = "gemm:1", ...}, ...});
//
// Each variant can be requested by its name. Without a name the autotuner takes the candidate that is the fastest on
// this GPU at this shape. If no variant serves the shape, the base runs the op.
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
struct Variant {
  const char* name = nullptr;                             // "gemm:3"
  std::string (*refuses)(const Problem&) = nullptr;       // why it can't serve the problem; empty: it does
  uint64_t (*workspace_bytes)(const Problem&) = nullptr;  // none
  void (*run)(const Problem&, cudaStream_t, const OpArgs&) = nullptr;
  bool candidate = true;  // false: run only by its name
  // False: taken only if it agrees with the first trusted candidate (autotune.hpp), for example because it rounds more.
  bool trusted = true;

  uint64_t workspace_of(const Problem& problem) const {
    return workspace_bytes == nullptr ? 0 : workspace_bytes(problem);
  }
};

// A variant for a given problem, as the autotuner sees it.
template <class Problem>
class VariantAlgorithm final : public Algorithm {
 public:
  VariantAlgorithm(const Variant<Problem>& variant, const Problem& problem) : variant_(variant), problem_(problem) {}
  std::string name() const override { return variant_.name; }
  uint64_t workspace_bytes() const override { return variant_.workspace_of(problem_); }
  void run(const OpArgs& args, cudaStream_t stream) override { variant_.run(problem_, stream, args); }

 private:
  Variant<Problem> variant_;
  Problem problem_;
};

template <class Problem>
struct VariantList {
  std::vector<Variant<Problem>> variants;

  // The variants that serve the problem, in their order.
  std::vector<Variant<Problem>> candidates(const Problem& problem) const {
    std::vector<Variant<Problem>> found;
    for (const Variant<Problem>& variant : variants) {
      if (variant.candidate && variant.refuses(problem).empty()) found.push_back(variant);
    }
    return found;
  }

  std::string refusals(const Problem& problem) const {
    std::string text;
    for (const Variant<Problem>& variant : variants) {
      if (variant.candidate)
        text += (text.empty() ? "" : "; ") + std::string(variant.name) + ": " + variant.refuses(problem);
    }
    return text;
  }
};

template <class Problem>
Candidates candidates_of(const VariantList<Problem>& list, const Problem& problem) {
  Candidates found;
  const std::vector<Variant<Problem>> variants = list.candidates(problem);
  found.first_trusted = variants.size();
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].trusted) found.first_trusted = std::min(found.first_trusted, i);
    found.algorithms.push_back(std::make_unique<VariantAlgorithm<Problem>>(variants[i], problem));
  }
  return found;
}

template <class Problem>
AlgorithmPtr variant_of(const VariantList<Problem>& list, const Problem& problem, const std::string& name) {
  for (const Variant<Problem>& variant : list.candidates(problem)) {
    if (variant.name == name) return std::make_unique<VariantAlgorithm<Problem>>(variant, problem);
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

// The variant that runs the op of `desc`. The autotuner chooses; `key` identifies the problem in its cache.
template <class Problem>
AlgorithmPtr choose_variant(TiledDevice& device, const OpDesc& desc, const VariantList<Problem>& list,
                            const Problem& problem, const std::string& key) {
  const TuningTask task{
      .key = key,
      .terms = problem.terms,
      .nan_input = -1,
      .candidates = [&] { return candidates_of(list, problem); },
      .restore = [&](const std::string& name) { return variant_of(list, problem, name); },
  };
  return choose_algorithm(device, desc, task);
}

// The answer of a problem's variants. If the problem has a score, the answer has that score.
template <class Problem>
plugin::Support support_with(const Problem& problem, uint64_t workspace_bytes) {
  if constexpr (requires { problem.score(); }) return plugin::Support::yes(workspace_bytes, problem.score());
  return plugin::Support::yes(workspace_bytes);
}

// Registers the variants of `op`. The autotuner needs a member `terms` of the problem: the number of products in one
// sum.
template <class Problem>
void add_variants(TiledDevice& device, int32_t op, Problem (*problem_of)(const OpDesc&),
                  std::string (*key_of)(const Problem&), std::vector<Variant<Problem>> variants,
                  Dtypes dtypes = Dtypes::f32, Layouts layouts = Layouts::packed) {
  const auto list = std::make_shared<const VariantList<Problem>>(VariantList<Problem>{std::move(variants)});
  const auto takes = [=](plugin::KernelFactory& factory) {
    factory.half = dtypes == Dtypes::floating;
    factory.channels_last = layouts == Layouts::channels_last_too;
  };
  plugin::KernelFactory tuned;
  takes(tuned);
  tuned.query = [list, problem_of](const OpDesc& desc) {
    return support_of([&] {
      const Problem problem = problem_of(desc);
      const std::vector<Variant<Problem>> serving = list->candidates(problem);
      if (serving.empty()) return plugin::Support::no(list->refusals(problem));
      uint64_t workspace_bytes = 0;
      for (const Variant<Problem>& variant : serving) {
        workspace_bytes = std::max(workspace_bytes, variant.workspace_of(problem));
      }
      return support_with(problem, workspace_bytes);
    });
  };
  tuned.create = [&device, list, problem_of, key_of](const OpDesc& desc) {
    const Problem problem = problem_of(desc);
    return kernel_of(choose_variant(device, desc, *list, problem, key_of(problem)));
  };
  device.add(op, std::move(tuned));

  for (const Variant<Problem>& variant : list->variants) {
    plugin::KernelFactory named;
    named.name = variant.name;
    named.only_by_name = true;
    takes(named);
    named.query = [variant, problem_of](const OpDesc& desc) {
      return support_of([&] {
        const Problem problem = problem_of(desc);
        const std::string reason = variant.refuses(problem);
        return reason.empty() ? support_with(problem, variant.workspace_of(problem)) : plugin::Support::no(reason);
      });
    };
    named.create = [variant, problem_of](const OpDesc& desc) {
      return kernel_of(std::make_unique<VariantAlgorithm<Problem>>(variant, problem_of(desc)));
    };
    device.add(op, std::move(named));
  }
}

}  // namespace gpunn::cuda_tiled
