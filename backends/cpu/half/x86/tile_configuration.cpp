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

}  // namespace

void begin_tiles() {
  static const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}

void end_tiles() { _tile_release(); }

}  // namespace gpunn::cpu
