// The host side of bf16 and f16 products: the copies before the product, the split of K, and the launch.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "gemm/wgmma/major.hpp"
#include "gemm/wgmma/tensor_map.hpp"
#include "half/half_product.hpp"

namespace gpunn::cuda_tiled {

// Lines of numbers of 16 bits, of which TMA wants each to begin at a multiple of 16 bytes: others are copied into the
// workspace, with a gap behind each.
struct HalfLines {
  int64_t lines = 0;
  int64_t line = 0;
  bool made = false;  // they are made in the workspace, of another tensor

  bool is_copied() const { return made || line % 8 != 0; }
  int64_t pitch() const { return (line + 7) / 8 * 8; }
  uint64_t copy_bytes() const;  // 0: it is not copied
};

// The product without its addresses. The caller fills in the operands and y in `product`.
struct HalfPlan {
  HalfProduct product;
  HalfElement element = HalfElement::kBf16;
  Major major_a = Major::kK, major_b = Major::kK;
  HalfLines a, b;
  int tile = 0;  // of kHalfTiles
  uint64_t parts_bytes = 0;

  const HalfTile& tile_size() const { return kHalfTiles[static_cast<std::size_t>(tile)]; }
  uint64_t workspace_bytes() const { return a.copy_bytes() + b.copy_bytes() + parts_bytes; }
};

// Fills in the tiles and splits with which `multiprocessors` of the GPU should finish first. `whole`: nothing is split.
void plan_tiles(HalfPlan& plan, int multiprocessors, bool whole = false);

// Whether the kernels can count what the plan has: tiles, pieces of y and of copies, each in 31 bits.
bool is_countable(const HalfPlan& plan);

struct HalfAddresses {
  void* y = nullptr;
  const float* bias = nullptr;
  const void* residual = nullptr;  // laid out as y
  void* workspace = nullptr;
  HalfStatistics statistics = {};
  HalfGradient gradient = {};
};

// The operand's lines in a form that TMA can read: copied into `room` if necessary.
const void* place_lines(const HalfLines& lines, const void* data, void* room, cudaStream_t stream);

// y = the product. `plan` has its tensor maps.
void run_half_product(const HalfPlan& plan, const HalfAddresses& addresses, int multiprocessors, cudaStream_t stream);

// Why the current GPU can't run these kernels; empty if it can.
std::string half_refusal_of_gpu();

// y = the sum of the parts, in their order.
void add_half_parts(const HalfPlan& plan, cudaStream_t stream);

// Launches the kernels of the tile; each tile has its own file.
template <int kTile>
void launch_half_tile(const HalfPlan& plan, int blocks, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
