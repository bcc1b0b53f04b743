// The inner kernels of Winograd's convolution of 3x3 filters, F(4x4, 3x3) and, for their gradient, F(3x3, 4x4). Images
// lie channels-last: every transform is of whole vectors of channels, without shuffles.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// Pixels [row_begin, row_end) x [column_begin, column_end) of a tile are in the image, the others are zero.
struct WinogradTile {
  int row_begin;
  int row_end;
  int column_begin;
  int column_end;
  int64_t row;     // floats from one row of the image to the next
  int64_t column;  // from one pixel to the next
};

struct WinogradKernels {
  // v[point * v_point + c] = the 36 points of the 6x6 pixels at x, c < channels.
  void (*input)(const float* x, const WinogradTile& tile, int64_t channels, float* v, int64_t v_point);
  // d[point * d_point + c] = the 36 points of the 4x4 pixels at dy, the filter of the weight gradient.
  void (*gradient)(const float* dy, const WinogradTile& tile, int64_t channels, float* d, int64_t d_point);
  // The 4x4 pixels at y, those in the image alone, of the 36 points at m; plus bias (may be null), and what y held
  // where `add` is set; through ReLU.
  void (*output)(const float* m, int64_t m_point, int64_t channels, const float* bias, bool add, bool relu, float* y,
                 const WinogradTile& tile);
  // u[point * u_point + i] = the 36 points of nine taps w[tap * w_tap + i], i < n.
  void (*filter)(const float* w, int64_t w_tap, int64_t n, float* u, int64_t u_point);
  // dw[tap * dw_tap + i] = the nine taps of the 36 points at m, i < n.
  void (*weight_gradient)(const float* m, int64_t m_point, int64_t n, float* dw, int64_t dw_tap);
};

GPUNN_DECLARE_ISA_VARIANTS(WinogradKernels, winograd_kernels);

}  // namespace gpunn::cpu
