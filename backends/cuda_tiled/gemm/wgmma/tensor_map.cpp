#include "gemm/wgmma/tensor_map.hpp"

#include <gpunn/plugin_cuda.hpp>

#include <string>

#include <cuda_runtime_api.h>

#include "cuda_common/check.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr uint32_t kLineBytes = 128;

// From the driver that the runtime has loaded; the plugin is not linked with it.
decltype(&cuTensorMapEncodeTiled) encoder() {
  static const auto function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    constexpr unsigned kSince = 12000;
    cuda::check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, kSince, cudaEnableDefault, &result),
                "looking for cuTensorMapEncodeTiled");
    if (result != cudaDriverEntryPointSuccess) {
      throw plugin::Failure(GPUNN_NO_DEVICE, "the driver has no cuTensorMapEncodeTiled");
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  return function;
}

CUtensorMap tensor_map(const MatrixInMemory& matrix, int box_outer, CUtensorMapDataType type, uint32_t bytes) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(matrix.inner), static_cast<cuuint64_t>(matrix.outer)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(matrix.pitch) * bytes};
  const cuuint32_t box[] = {kLineBytes / bytes, static_cast<cuuint32_t>(box_outer)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  const CUresult code = encoder()(&map, type, 2, const_cast<void*>(matrix.data), sizes, strides, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code != CUDA_SUCCESS) {
    throw plugin::Failure(GPUNN_INTERNAL, "cuTensorMapEncodeTiled gave error " + std::to_string(code));
  }
  return map;
}

}  // namespace

CUtensorMap tf32_tensor_map(const MatrixInMemory& matrix, int box_outer) {
  return tensor_map(matrix, box_outer, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 4);
}

CUtensorMap bf16_tensor_map(const MatrixInMemory& matrix, int box_outer) {
  return tensor_map(matrix, box_outer, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2);
}

}  // namespace gpunn::cuda_tiled
