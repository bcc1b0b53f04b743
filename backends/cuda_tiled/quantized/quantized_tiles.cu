#include "quantized/quantized_kernel.cuh"

namespace gpunn::cuda_tiled {

void launch_quantized(int index, const QuantizedArguments& arguments, cudaStream_t stream) {
  using Run = void (*)(const QuantizedArguments&, cudaStream_t);
  constexpr auto& kTiles = kQuantizedTiles;
  static constexpr Run kRuns[] = {
      launch_quantized_tile<kTiles[0], false>, launch_quantized_tile<kTiles[1], false>,
      launch_quantized_tile<kTiles[2], false>, launch_quantized_tile<kTiles[3], false>,
      launch_quantized_tile<kTiles[4], false>, launch_quantized_tile<kTiles[5], false>,
      launch_quantized_tile<kTiles[6], false>,
  };
  static_assert(std::size(kRuns) == std::size(kTiles));
  kRuns[index](arguments, stream);
}

}  // namespace gpunn::cuda_tiled
