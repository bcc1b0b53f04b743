// The fp32 rungs of the GEMM ladder, in its order.
#pragma once

#include <vector>

#include "gemm/rungs.hpp"

inline std::vector<gpunn::cuda_tiled::Rung<gpunn::cuda_tiled::Gemm>> fp32_rungs() {
  namespace tiled = gpunn::cuda_tiled;
  using Rung = tiled::Rung<tiled::Gemm>;
  std::vector<Rung> all = {tiled::shared_tiles_rung(), tiled::register_tiles_rung(), tiled::vector_loads_rung(),
                           tiled::async_copies_rung()};
  for (const Rung& rung : tiled::warp_tiles_rungs()) all.push_back(rung);
  for (const Rung& rung : tiled::small_tiles_rungs()) all.push_back(rung);
  all.push_back(tiled::k_major_copies_rung());
  all.push_back(tiled::stream_k_rung());
  for (const Rung& rung : tiled::strassen_rungs()) all.push_back(rung);
  return all;
}
