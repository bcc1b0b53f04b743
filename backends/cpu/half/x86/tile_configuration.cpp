#include <array>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "tile_registers.hpp"

namespace gpunn::cpu {
namespace {

struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr int kMostQuads = 16;  // of bytes of a left factor's row

// Constants: the compiler takes it that _tile_loadconfig reads a configuration's first bytes alone, and would leave out
// what is stored behind them.
constexpr auto kConfigurations = [] {
  std::array<TileConfiguration, kMostQuads + 1> made;
  for (std::size_t quads = 1; quads <= kMostQuads; ++quads) {
    for (const std::size_t left : {4, 5}) made[quads].row_bytes[left] = static_cast<uint16_t>(quads * 4);
    for (const std::size_t right : {6, 7}) made[quads].rows[right] = static_cast<uint8_t>(quads);
  }
  return made;
}();

}  // namespace

void begin_tiles() { begin_tiles_of(kMostQuads * 4); }

void begin_tiles_of(int a_bytes) { _tile_loadconfig(&kConfigurations[static_cast<std::size_t>(a_bytes) / 4]); }

void end_tiles() { _tile_release(); }

}  // namespace gpunn::cpu
