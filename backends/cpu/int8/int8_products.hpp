// Products of numbers in eight bits, summed in 32, on what a processor has for them.
#pragma once

#include <cstdint>

#include "simd/int8.hpp"

namespace gpunn::cpu {

struct Int8Products {
  const char* name;  // "vnni512", "vnni", "portable"
  int group;         // of Int8Tile
  void (*multiply)(const Int8Tile& tile);
};

// The best that this build has and this machine runs: AVX512-VNNI where the instruction set is avx512, AVX-VNNI where
// it is avx2 at least, else loops.
const Int8Products& int8_products();

}  // namespace gpunn::cpu
