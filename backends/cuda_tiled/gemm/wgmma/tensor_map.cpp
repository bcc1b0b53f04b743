#include "gemm/wgmma/tensor_map.hpp"

#include <gpunn/plugin_cuda.hpp>

#include <string>

#include <cuda_runtime_api.h>

#include "cuda_common/check.hpp"

namespace gpunn::cuda_tiled {
namespace {

// A function of the driver that the runtime has loaded; the plugin is not linked with it.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  constexpr unsigned kSince = 12000;
  cuda::check(cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &result),
              "looking for a function of the driver");
  if (result != cudaDriverEntryPointSuccess) {
    throw plugin::Failure(GPUNN_NO_DEVICE, std::string("the driver has no ") + name);
  }
  return reinterpret_cast<Function*>(found);
}

auto encoder() {
  static const auto function = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  return function;
}

auto window_encoder() {
  static const auto function = driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  return function;
}

void check_encoded(CUresult code) {
  if (code != CUDA_SUCCESS) {
    throw plugin::Failure(GPUNN_INTERNAL, "encoding a tensor map gave error " + std::to_string(code));
  }
}

// For boxes of lines of as many bytes as the swizzle spans.
CUtensorMap tensor_map(const MatrixInMemory& matrix, int box_outer, CUtensorMapDataType type, uint32_t bytes,
                       CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B, uint32_t line_bytes = kLineBytes) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(matrix.inner), static_cast<cuuint64_t>(matrix.outer)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(matrix.pitch) * bytes};
  const cuuint32_t box[] = {line_bytes / bytes, static_cast<cuuint32_t>(box_outer)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  check_encoded(encoder()(&map, type, 2, const_cast<void*>(matrix.data), sizes, strides, box, steps,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

}  // namespace

CUtensorMap tf32_tensor_map(const MatrixInMemory& matrix, int box_outer) {
  return tensor_map(matrix, box_outer, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 4);
}

CUtensorMap bf16_tensor_map(const MatrixInMemory& matrix, int box_outer) {
  return tensor_map(matrix, box_outer, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2);
}

CUtensorMap byte_tensor_map(const MatrixInMemory& matrix, int box_outer) {
  return tensor_map(matrix, box_outer, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, CU_TENSOR_MAP_SWIZZLE_64B, 64);
}

namespace {

// TMA copies numbers of either type alike.
constexpr CUtensorMapDataType kHalf = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
constexpr cuuint32_t kHalfLine = kLineBytes / sizeof(uint16_t);

cuuint64_t half_bytes(int64_t numbers) { return static_cast<cuuint64_t>(numbers) * sizeof(uint16_t); }

}  // namespace

CUtensorMap half_tensor_map(const TapsInMemory& matrix, int box_outer) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(matrix.inner), static_cast<cuuint64_t>(matrix.taps),
                              static_cast<cuuint64_t>(matrix.outer)};
  const cuuint64_t strides[] = {half_bytes(matrix.pitch), half_bytes(matrix.pitch * matrix.taps)};
  const cuuint32_t box[] = {kHalfLine, 1, static_cast<cuuint32_t>(box_outer)};
  const cuuint32_t steps[] = {1, 1, 1};
  CUtensorMap map;
  check_encoded(encoder()(&map, kHalf, 3, const_cast<void*>(matrix.data), sizes, strides, box, steps,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

CUtensorMap pixel_tensor_map(const PixelsInMemory& pixels, int box_rows, int box_columns) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(pixels.channels), static_cast<cuuint64_t>(pixels.columns),
                              static_cast<cuuint64_t>(pixels.rows), static_cast<cuuint64_t>(pixels.images)};
  const cuuint64_t strides[] = {half_bytes(pixels.channels), half_bytes(pixels.channels * pixels.columns),
                                half_bytes(pixels.channels * pixels.columns * pixels.rows)};
  const cuuint32_t box[] = {kHalfLine, static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  check_encoded(encoder()(&map, kHalf, 4, const_cast<void*>(pixels.data), sizes, strides, box, steps,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

bool has_window_map(const WindowAxis& axis, int64_t reach) {
  // Corners of the box of windows' beginnings are 8 bits in four dimensions, as are the offsets of taps.
  constexpr int64_t kLeast = -128, kMost = 127, kMostOffset = 255, kMostStride = 8;
  const int64_t behind = axis.first + (axis.windows - 1) * axis.stride + 1 - axis.pixels;
  return axis.windows > 0 && axis.first >= kLeast && axis.first <= kMost && behind >= kLeast && behind <= kMost &&
         reach <= kMostOffset && axis.stride <= kMostStride;
}

CUtensorMap window_tensor_map(const ImagesInMemory& images, int pixels) {
  const WindowAxis &rows = images.rows, &columns = images.columns;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(images.channels), static_cast<cuuint64_t>(columns.pixels),
                              static_cast<cuuint64_t>(rows.pixels), static_cast<cuuint64_t>(images.images)};
  const cuuint64_t strides[] = {half_bytes(images.pitch), half_bytes(images.pitch * columns.pixels),
                                half_bytes(images.pitch * columns.pixels * rows.pixels)};
  // The last window's beginning, seen from the last pixel.
  const auto upper = [](const WindowAxis& axis) {
    return static_cast<int>(axis.first + (axis.windows - 1) * axis.stride + 1 - axis.pixels);
  };
  const int lower_corner[] = {static_cast<int>(columns.first), static_cast<int>(rows.first)};
  const int upper_corner[] = {upper(columns), upper(rows)};
  const cuuint32_t steps[] = {1, static_cast<cuuint32_t>(columns.stride), static_cast<cuuint32_t>(rows.stride), 1};
  CUtensorMap map;
  check_encoded(window_encoder()(&map, kHalf, 4, const_cast<void*>(images.data), sizes, strides, lower_corner,
                                 upper_corner, kHalfLine, static_cast<cuuint32_t>(pixels), steps,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

}  // namespace gpunn::cuda_tiled
