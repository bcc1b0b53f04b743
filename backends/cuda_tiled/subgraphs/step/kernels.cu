#include "cuda_common/check.hpp"
#include "subgraphs/step/kernels.hpp"
#include "subgraphs/step/launch.cuh"

namespace gpunn::cuda_tiled {

using cuda::check;

extern template void launch_pass<kNormPart>(const StepPlan&, const GeneralTensors&, cudaStream_t);
extern template void launch_pass<kFinishPart>(const StepPlan&, const GeneralTensors&, cudaStream_t);
extern template void launch_pass<kLossPart | kBatchPart>(const StepPlan&, const GeneralTensors&, cudaStream_t);
extern template void launch_pass<kAllParts>(const StepPlan&, const GeneralTensors&, cudaStream_t);
extern template bool pass_is_resident<kNormPart>(const StepPlan&);
extern template bool pass_is_resident<kAllParts>(const StepPlan&);
extern template void launch_update<kNormPart>(const StepPlan&, const RankTensors&, cudaStream_t);
extern template void launch_update<kAllUpdateParts>(const StepPlan&, const RankTensors&, cudaStream_t);
extern template void launch_update<kRankPart>(const StepPlan&, const RankTensors&, cudaStream_t);
extern template void launch_update<kRankPart | kAllUpdateParts>(const StepPlan&, const RankTensors&, cudaStream_t);

StepLimits step_limits() {
  int device = 0;
  int major = 0;
  int optin = 0;
  StepLimits limits;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the architecture");
  check(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory");
  check(cudaDeviceGetAttribute(&limits.multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "asking for multiprocessors");
  if (major >= 9) limits.shared = optin - kStepStaticBytes;
  return limits;
}

bool step_is_resident(const StepPlan& plan) {
  if (plan.norm_layers == 0) return true;
  return plan.parts == kNormPart ? pass_is_resident<kNormPart>(plan) : pass_is_resident<kAllParts>(plan);
}

namespace {

void launch_single(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream) {
  switch (plan.parts) {
    case kNoParts:
      launch_pass<kNoParts>(plan, tensors, stream);
      break;
    case kNormPart:
      launch_pass<kNormPart>(plan, tensors, stream);
      break;
    case kFinishPart:
      launch_pass<kFinishPart>(plan, tensors, stream);
      break;
    case kLossPart | kBatchPart:
      launch_pass<kLossPart | kBatchPart>(plan, tensors, stream);
      break;
    default:
      launch_pass<kAllParts>(plan, tensors, stream);
  }
}

}  // namespace

void launch_step(const StepPlan& plan, const RankTensors& tensors, cudaStream_t stream) {
  if (plan.rounds > 0) {
    launch_rounds(plan, tensors, stream);
  } else {
    launch_single(plan, tensors, stream);
  }
  switch (plan.update_parts) {
    case kNoParts:
      launch_update<kNoParts>(plan, tensors, stream);
      break;
    case kNormPart:
      launch_update<kNormPart>(plan, tensors, stream);
      break;
    case kRankPart:
      launch_update<kRankPart>(plan, tensors, stream);
      break;
    case kRankPart | kAllUpdateParts:
      launch_update<kRankPart | kAllUpdateParts>(plan, tensors, stream);
      break;
    default:
      launch_update<kAllUpdateParts>(plan, tensors, stream);
  }
  if (plan.flat_blocks > 0) launch_flat(plan, tensors, stream);
}

}  // namespace gpunn::cuda_tiled
