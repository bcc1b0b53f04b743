#include "int8/int8_products.hpp"

#include "isa.hpp"
#include "tile_registers.hpp"

#if defined(GPUNN_INT8_PRODUCTS)
#include <cpuid.h>
#endif

namespace gpunn::cpu {

#if defined(GPUNN_INT8_PRODUCTS)

void multiply_vnni512(const Int8Tile& tile);
void multiply_vnni(const Int8Tile& tile);
void multiply_amx(const Int8Tile& tile);

namespace {

struct Int8Features {
  bool avx512_vnni = false;
  bool avx_vnni = false;
  bool amx_int8 = false;
};

Int8Features int8_features() {
  constexpr unsigned kAvx512Vnni = 1U << 11;              // of leaf 7, subleaf 0, ecx
  constexpr unsigned kAmxInt8 = (1U << 24) | (1U << 25);  // AMX-TILE and AMX-INT8, likewise, edx
  constexpr unsigned kAvxVnni = 1U << 4;                  // of leaf 7, subleaf 1, eax
  unsigned a = 0, b = 0, c = 0, d = 0;
  Int8Features found;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    found.avx512_vnni = (c & kAvx512Vnni) != 0;
    found.amx_int8 = found.avx512_vnni && (d & kAmxInt8) == kAmxInt8 && may_use_tiles();
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) found.avx_vnni = (a & kAvxVnni) != 0;
  return found;
}

}  // namespace

#endif

std::vector<Int8Products> usable_int8_products() {
  std::vector<Int8Products> usable = {{.name = "portable",
                                       .group = 1,
                                       .depth = 1,
                                       .rows = Int8Tile::kVectorRows,
                                       .begin = nullptr,
                                       .end = nullptr,
                                       .multiply = GPUNN_SELECT_ISA(int8_kernels).multiply}};
#if defined(GPUNN_INT8_PRODUCTS)
  constexpr int kFour = 4;
  static const Int8Features found = int8_features();
  const auto add = [&](const char* name, void (*multiply)(const Int8Tile&)) {
    usable.push_back({.name = name,
                      .group = kFour,
                      .depth = kFour,
                      .rows = Int8Tile::kVectorRows,
                      .begin = nullptr,
                      .end = nullptr,
                      .multiply = multiply});
  };
  if (active_isa() != Isa::baseline && found.avx_vnni) add("vnni", multiply_vnni);
  if (active_isa() == Isa::avx512 && found.avx512_vnni) add("vnni512", multiply_vnni512);
#if defined(GPUNN_INT8_TILES)
  constexpr int kTileDepth = 64;
  if (active_isa() == Isa::avx512 && found.amx_int8) {
    usable.push_back({.name = "amx",
                      .group = kFour,
                      .depth = kTileDepth,
                      .rows = Int8Tile::kMostRows,
                      .begin = begin_tiles,
                      .end = end_tiles,
                      .multiply = multiply_amx});
  }
#endif
#endif
  return usable;
}

}  // namespace gpunn::cpu
