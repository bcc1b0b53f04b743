// A family of variants that are products of half_product.hpp: a variant for each tile, named by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "half/half_product.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

// The variants conv:half_128x256 and so on of the family "conv:half_". The functions are those of a Variant, for the
// tile of kHalfTiles that comes behind the problem.
template <class Problem, std::string (*kRefuses)(const Problem&, int), uint64_t (*kWorkspaceBytes)(const Problem&, int),
          void (*kRun)(const Problem&, int, cudaStream_t, const OpArgs&)>
std::vector<Variant<Problem>> half_variants(std::string_view family) {
  static const std::vector<std::string> names = [&] {
    std::vector<std::string> made;
    for (const std::string_view tile : kHalfTileNames) made.push_back(std::string(family) + std::string(tile));
    return made;
  }();
  return []<std::size_t... kTiles>(std::index_sequence<kTiles...>) {
    return std::vector<Variant<Problem>>{
        {.name = names[kTiles].c_str(),
         .refuses = [](const Problem& problem) { return kRefuses(problem, kTiles); },
         .workspace_bytes = [](const Problem& problem) { return kWorkspaceBytes(problem, kTiles); },
         .run = [](const Problem& problem, cudaStream_t stream,
                   const OpArgs& args) { kRun(problem, kTiles, stream, args); }}...};
  }
  (std::make_index_sequence<kHalfTiles.size()>());
}

}  // namespace gpunn::cuda_tiled
