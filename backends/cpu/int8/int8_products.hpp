// Products of numbers in eight bits, summed in 32, on what a processor has for them.
#pragma once

#include <cstdint>
#include <vector>

#include "simd/int8.hpp"

namespace gpunn::cpu {

struct Int8Products {
  const char* name;
  int group;  // of Int8Tile
  int depth;  // k is a multiple
  int rows;   // of a tile, at most Int8Tile::kMostRows
  // Around the tiles of a task; null: nothing is to be done.
  void (*begin)();
  void (*end)();
  void (*multiply)(const Int8Tile& tile);
};

// What this build has and this machine runs, best last: loops ("portable"), AVX-VNNI ("vnni") where the instruction set
// is avx2 at least, AVX512-VNNI ("vnni512") and AMX ("amx") where it is avx512. All give the same sums. The first call
// asks the system for the use of tiles.
std::vector<Int8Products> usable_int8_products();

}  // namespace gpunn::cpu
