#include "half/half_tile.hpp"

#include "isa.hpp"
#include "tile_registers.hpp"

#if defined(GPUNN_HALF_TILES)
#include <cpuid.h>
#endif

namespace gpunn::cpu {

#if defined(GPUNN_HALF_TILES)

extern const HalfTileKernels amx_tiles;
extern const HalfTileKernels avx512_bf16_tiles;

namespace {

struct Features {
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
};

Features features() {
  constexpr unsigned kAvx512Bf16 = 1U << 5;           // of leaf 7, subleaf 1, eax
  constexpr unsigned kAmx = (1U << 22) | (1U << 24);  // AMX-BF16 and AMX-TILE, of leaf 7, edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  Features found;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) found.avx512_bf16 = (a & kAvx512Bf16) != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    found.amx_bf16 = found.avx512_bf16 && (d & kAmx) == kAmx && may_use_tiles();
  }
  return found;
}

}  // namespace

std::vector<const HalfTileKernels*> usable_half_tiles() {
  static const Features found = features();
  std::vector<const HalfTileKernels*> usable;
  if (active_isa() != Isa::avx512) return usable;
  if (found.avx512_bf16) usable.push_back(&avx512_bf16_tiles);
  if (found.amx_bf16) usable.push_back(&amx_tiles);
  return usable;
}

#else

std::vector<const HalfTileKernels*> usable_half_tiles() { return {}; }

#endif

}  // namespace gpunn::cpu
