// The op families of this backend, a file each.
#pragma once

namespace gpunn::cuda_tiled {

class TiledDevice;

}  // namespace gpunn::cuda_tiled
