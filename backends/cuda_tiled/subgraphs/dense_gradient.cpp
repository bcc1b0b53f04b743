#include "subgraphs/dense_gradient.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "counters.hpp"
#include "cuda_common/autotune.hpp"
#include "cuda_common/stream.hpp"
#include "device.hpp"
#include "gemm/choose_gemm.hpp"
#include "gemm/masked.hpp"
#include "op_arguments.hpp"
#include "subgraphs/dense_match.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;
using backends::Refusal;

constexpr const char* kSeparate = "separate";

std::vector<MaskedVariant> serving(const Gemm& problem) {
  std::vector<MaskedVariant> variants = masked_variants();
  // Rounded to BF16 a product is so much faster that none of these would be chosen.
  if (problem.precision == GPUNN_PRECISION_BF16) return {};
  std::erase_if(variants, [&](const MaskedVariant& variant) { return !variant.refuses(problem).empty(); });
  return variants;
}

class MaskedAlgorithm final : public cuda::Algorithm {
 public:
  MaskedAlgorithm(const MaskedVariant& variant, const Gemm& problem)
      : variant_(variant), problem_(problem), counters_(static_cast<std::size_t>(counters_of_mask(problem))) {}
  std::string name() const override { return variant_.name; }
  uint64_t workspace_bytes() const override { return variant_.workspace_bytes(problem_); }
  void run(const OpArgs& args, cudaStream_t stream) override { variant_.run(problem_, stream, args, counters_.data()); }

 private:
  MaskedVariant variant_;
  Gemm problem_;
  Counters counters_;
};

// What masks the product where it is a kernel of its own. Throws Refusal.
Device::Choice mask_of(const TiledDevice& device, const OpDesc& mask) {
  Device::Choice choice = device.choose(mask);
  if (choice.factory == nullptr) throw Refusal(choice.support.reason);
  return choice;
}

// The two ops, one after the other.
class Separate final : public cuda::Algorithm {
 public:
  Separate(const TiledDevice& device, cuda::AlgorithmPtr product, const OpDesc& mask)
      : index_(device.index()), product_(std::move(product)) {
    const Device::Choice choice = mask_of(device, mask);
    workspace_bytes_ = std::max(product_->workspace_bytes(), choice.support.workspace_bytes);
    mask_ = choice.factory->create(mask);
  }
  std::string name() const override { return kSeparate; }
  uint64_t workspace_bytes() const override { return workspace_bytes_; }
  void run(const OpArgs& args, cudaStream_t native) override {
    CudaStream stream(index_, native);
    void* const workspace = args.workspace<void>();
    const OpArguments<2, 1> product({&args.input(0), &args.input(1)}, {&args.output(0)}, workspace, workspace_bytes_);
    product_->run(product.get(), native);
    const OpArguments<2, 2> mask({&args.output(0), &args.input(2)}, {&args.output(0), &args.output(1)}, workspace,
                                 workspace_bytes_);
    mask_->enqueue(stream, mask.get());
  }

 private:
  int index_;
  uint64_t workspace_bytes_;
  cuda::AlgorithmPtr product_;
  std::unique_ptr<Kernel> mask_;
};

// The variant that the product alone is run by, with its epilogue, or without where it has none or is faster so. Where
// it has none, those of tensor cores that have one are tried too: what they lose to it the pass may cost more.
cuda::AlgorithmPtr choose(TiledDevice& device, const ProgramDesc& desc, std::size_t first, const DenseSubgraph& run) {
  const Gemm problem = gemm_of(desc.op(first));
  const std::vector<MaskedVariant> variants = serving(problem);
  const std::string product = choose_gemm(device, desc.op(first))->name();
  const auto named = [&](const std::string& name) {
    return std::find_if(variants.begin(), variants.end(),
                        [&](const MaskedVariant& variant) { return variant.name == name; });
  };
  std::vector<std::string> names;
  if (named(product) != variants.end()) {
    names = {product, kSeparate};
  } else {
    names = {kSeparate};
    for (const MaskedVariant& variant : masked_wgmma_variants()) {
      if (named(variant.name) != variants.end()) names.emplace_back(variant.name);
    }
  }
  const auto made = [&](const std::string& name) -> cuda::AlgorithmPtr {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw Refusal("the product is no longer run by " + name);
    }
    if (name == kSeparate) {
      return std::make_unique<Separate>(device, choose_gemm(device, desc.op(first)), desc.op(first + 1));
    }
    return std::make_unique<MaskedAlgorithm>(*named(name), problem);
  };
  if (names.size() == 1) return made(kSeparate);
  const auto all = [&] {
    cuda::Candidates candidates;
    for (const std::string& name : names) candidates.algorithms.push_back(made(name));
    return candidates;
  };
  const std::array<const gpunn_tensor*, 3> inputs = {&desc.tensor(run.inputs[0]), &desc.tensor(run.inputs[1]),
                                                     &desc.tensor(run.inputs[2])};
  const std::array<const gpunn_tensor*, 2> outputs = {&desc.tensor(run.outputs[0]), &desc.tensor(run.outputs[1])};
  gpunn_op_desc op = desc.op(first).raw();
  op.n_inputs = inputs.size();
  op.n_outputs = outputs.size();
  op.inputs = inputs.data();
  op.outputs = outputs.data();
  return cuda::choose_algorithm(device, OpDesc(op),
                                {.key = "masked " + key_of(problem),
                                 .terms = problem.terms,
                                 .nan_input = -1,
                                 .candidates = all,
                                 .restore = made});
}

}  // namespace

SubgraphSupport query_dense(const TiledDevice& device, const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  if (match_dense(desc, first, limit).ops == 0) return SubgraphSupport::no();
  try {
    const Gemm problem = gemm_of(desc.op(first));
    const std::vector<MaskedVariant> variants = serving(problem);
    if (variants.empty()) return SubgraphSupport::no();
    uint64_t bytes = mask_of(device, desc.op(first + 1)).support.workspace_bytes;
    bytes = std::max(bytes, device.choose(desc.op(first)).support.workspace_bytes);
    for (const MaskedVariant& variant : variants) bytes = std::max(bytes, variant.workspace_bytes(problem));
    return SubgraphSupport::yes(2, "fused dense gradient", bytes);
  } catch (const Refusal& refusal) {
    return SubgraphSupport::no(refusal.what());
  }
}

std::unique_ptr<Subgraph> create_dense(TiledDevice& device, const ProgramDesc& desc, std::size_t first,
                                       std::size_t count) {
  const DenseSubgraph run = match_dense(desc, first, count);
  if (run.ops == 0 || run.ops != count) throw Failure(GPUNN_INVALID_ARGUMENT, "not a gradient that was fused");
  return make_subgraph([run, algorithm = choose(device, desc, first, run)](Stream& stream, const SubgraphArgs& args) {
    const auto of = [&](int32_t id) { return &args.tensor(id); };
    const OpArguments<3, 2> of_run({of(run.inputs[0]), of(run.inputs[1]), of(run.inputs[2])},
                                   {of(run.outputs[0]), of(run.outputs[1])}, args.workspace<void>(),
                                   algorithm->workspace_bytes());
    algorithm->run(of_run.get(), cuda::native(stream));
  });
}

}  // namespace gpunn::cuda_tiled
