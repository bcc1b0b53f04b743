#pragma once

namespace gpunn::cuda_tiled {

inline constexpr int kWarp = 32;
inline constexpr unsigned kEveryLane = 0xffffffffU;  // which lanes take part in a shuffle or a vote

}  // namespace gpunn::cuda_tiled
