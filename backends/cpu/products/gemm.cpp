#include "products/gemm.hpp"

#include <algorithm>
#include <utility>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// A panel of b, k_block x tile_columns, stays in L1 while the panels of a in a task's group stream from L2.
constexpr int64_t kDepth = 384;
constexpr int64_t kRowsAtOnce = 2048;
constexpr int64_t kColumnsAtOnce = 2048;
constexpr int64_t kPanelsInGroup = 8;
// Below this many multiplications a second thread costs more than it gains.
constexpr int64_t kSerialWork = 400'000;
// A factor is read in place if the rows of one block span at most this many bytes, which the second-level cache and the
// translation buffer hold, and it is read by few panels of the other. Of 1 MiB, 128x777x333 takes 1.8 times as long.
constexpr int64_t kInPlaceBytes = 1 << 19;
constexpr int64_t kInPlacePanels = 16;
// Up to this many rows of dot products, neither factor is worth packing.
constexpr int64_t kFewRows = 2;

// The smallest size of blocks, a multiple of `unit`, that needs no more of them than blocks of `largest` do.
int64_t even_multiple(int64_t total, int64_t largest, int64_t unit) {
  const int64_t blocks = std::max<int64_t>(divide_up(total, largest), 1);
  return std::max(round_up(divide_up(total, blocks), unit), unit);
}

}  // namespace

// One step of the loops over blocks.
struct Gemm::Block {
  const float* a;  // the block's first element
  const float* b;
  float* c;
  float* a_packed;
  float* b_packed;
  int64_t m;
  int64_t n;
  int64_t k;
  bool first;
  bool last;
  const float* bias;  // at the block's first column, or row where swapped
  bool relu;
  int threads;

  bool b_panel_packed(const Gemm& gemm, int64_t columns) const {
    return !gemm.b_in_place_ || columns % gemm.kernels_->lanes != 0;
  }
};

Gemm::Gemm(const GemmShape& shape, int threads)
    : kernels_(&GPUNN_SELECT_ISA(gemm_kernels)), threads_(threads), m_(shape.m), n_(shape.n), k_(shape.k) {
  a_ = shape.transpose_a ? Strides{1, m_} : Strides{k_, 1};
  b_ = shape.transpose_b ? Strides{k_, 1} : Strides{1, n_};
  if (static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_) < kSerialWork) threads_ = 1;
  dots_ = a_.k == 1 && b_.k == 1 && std::min(m_, n_) <= kFewRows && k_ > 0;
  // Lanes run over the columns; a narrow product is computed as its transpose.
  swapped_ = n_ <= kernels_->lanes / 2 && m_ > n_;
  if (swapped_) {
    std::swap(m_, n_);
    std::swap(a_, b_);
  }
  tile_rows_ = even_multiple(m_, kernels_->tile_rows, 1);
  tile_columns_ = kernels_->tile_columns;
  k_block_ = even_multiple(k_, kDepth, 1);
  m_block_ = even_multiple(m_, kRowsAtOnce, tile_rows_);
  n_block_ = even_multiple(n_, kColumnsAtOnce, tile_columns_);
  const auto in_place = [&](const Strides& s, int64_t other_panels) {
    return s.index == 1 && other_panels <= kInPlacePanels &&
           s.k <= kInPlaceBytes / static_cast<int64_t>(sizeof(float)) / k_block_;
  };
  a_in_place_ = in_place(a_, divide_up(n_, tile_columns_));
  b_in_place_ = in_place(b_, divide_up(m_, tile_rows_));
  // The surplus of pack's last store stays in the panel, which another thread's neighbour begins after.
  a_panel_floats_ = round_up(tile_rows_ * k_block_ + kernels_->lanes, 16);
  b_panel_floats_ = round_up(tile_columns_ * k_block_, 16);
  if (dots_) return;
  if (!a_in_place_) a_floats_ = std::min(divide_up(m_, tile_rows_), m_block_ / tile_rows_) * a_panel_floats_;
  const int64_t b_panels = std::min(divide_up(n_, tile_columns_), n_block_ / tile_columns_);
  // In place, but for a last panel that ends within a vector.
  b_floats_ = (b_in_place_ ? int64_t{n_ % kernels_->lanes != 0} : b_panels) * b_panel_floats_;
}

void Gemm::run(const float* a, const float* b, float* c, const GemmEpilogue& epilogue, float* workspace) const {
  if (m_ == 0 || n_ == 0) return;
  if (dots_) return run_dots(a, b, c, epilogue);
  if (swapped_) std::swap(a, b);
  const int64_t c_row = swapped_ ? 1 : n_;
  const int64_t c_column = swapped_ ? m_ : 1;
  for (int64_t i = 0; i < m_; i += m_block_) {
    for (int64_t j = 0; j < n_; j += n_block_) {
      int64_t p = 0;
      do {
        const int64_t bias_at = swapped_ ? i : j;
        const Block block{.a = a + i * a_.index + p * a_.k,
                          .b = b + j * b_.index + p * b_.k,
                          .c = c + i * c_row + j * c_column,
                          .a_packed = workspace,
                          .b_packed = workspace + a_floats_,
                          .m = std::min(m_block_, m_ - i),
                          .n = std::min(n_block_, n_ - j),
                          .k = std::min(k_block_, k_ - p),
                          .first = p == 0,
                          .last = p + k_block_ >= k_,
                          .bias = epilogue.column_bias == nullptr ? nullptr : epilogue.column_bias + bias_at,
                          .relu = epilogue.relu,
                          .threads = threads_};
        pack_block(block);
        multiply_block(block);
        p += k_block_;
      } while (p < k_);
    }
  }
}

void Gemm::pack_block(const Block& block) const {
  const int64_t a_panels = a_in_place_ ? 0 : divide_up(block.m, tile_rows_);
  const int64_t b_panels = divide_up(block.n, tile_columns_);
  const int64_t last_columns = block.n - (b_panels - 1) * tile_columns_;
  const int64_t first_b_panel = !b_in_place_ ? 0 : block.b_panel_packed(*this, last_columns) ? b_panels - 1 : b_panels;
  parallel_for(block.threads, a_panels + b_panels - first_b_panel, [&](int64_t task, int) {
    if (task < a_panels) {
      const int64_t i = task * tile_rows_;
      kernels_->pack(block.a + i * a_.index, a_.index, a_.k, std::min(tile_rows_, block.m - i), tile_rows_, block.k,
                     block.a_packed + task * a_panel_floats_);
    } else {
      const int64_t slot = task - a_panels;
      const int64_t j = (first_b_panel + slot) * tile_columns_;
      kernels_->pack(block.b + j * b_.index, b_.index, b_.k, std::min(tile_columns_, block.n - j), tile_columns_,
                     block.k, block.b_packed + slot * b_panel_floats_);
    }
  });
}

void Gemm::multiply_block(const Block& block) const {
  const int64_t a_panels = divide_up(block.m, tile_rows_);
  const int64_t b_panels = divide_up(block.n, tile_columns_);
  // Groups of panels shrink until each thread has some tasks to pick from.
  int64_t a_group = std::min(kPanelsInGroup, a_panels);
  int64_t b_group = b_panels;
  const auto tasks = [&] { return divide_up(a_panels, a_group) * divide_up(b_panels, b_group); };
  while (block.threads > 1 && tasks() < 4 * block.threads && a_group * b_group > 1) {
    if (b_group >= a_group) {
      b_group = divide_up(b_group, 2);
    } else {
      a_group = divide_up(a_group, 2);
    }
  }
  const int64_t b_groups = divide_up(b_panels, b_group);
  const int64_t c_row = swapped_ ? 1 : n_;
  const int64_t c_column = swapped_ ? m_ : 1;
  parallel_for(block.threads, tasks(), [&](int64_t task, int) {
    const int64_t a_begin = task / b_groups * a_group;
    const int64_t b_begin = task % b_groups * b_group;
    for (int64_t bp = b_begin; bp < std::min(b_begin + b_group, b_panels); ++bp) {
      const int64_t j = bp * tile_columns_;
      const int64_t columns = std::min(tile_columns_, block.n - j);
      GemmTile tile{};
      tile.k = block.k;
      tile.columns = static_cast<int>(columns);
      tile.c_row = c_row;
      tile.c_column = c_column;
      tile.accumulate = !block.first;
      tile.relu = block.last && block.relu;
      if (block.b_panel_packed(*this, columns)) {
        tile.b = block.b_packed + (b_in_place_ ? 0 : bp) * b_panel_floats_;
        tile.b_stride = tile_columns_;
      } else {
        tile.b = block.b + j;
        tile.b_stride = b_.k;
      }
      const float* bias = block.last ? block.bias : nullptr;
      if (bias != nullptr && !swapped_) tile.column_bias = bias + j;
      for (int64_t ap = a_begin; ap < std::min(a_begin + a_group, a_panels); ++ap) {
        const int64_t i = ap * tile_rows_;
        tile.rows = static_cast<int>(std::min(tile_rows_, block.m - i));
        tile.a = a_in_place_ ? block.a + i : block.a_packed + ap * a_panel_floats_;
        tile.a_stride = a_in_place_ ? a_.k : tile_rows_;
        tile.c = block.c + i * c_row + j * c_column;
        if (bias != nullptr && swapped_) tile.row_bias = bias + i;
        kernels_->tile(tile);
      }
    }
  });
}

void Gemm::run_dots(const float* a, const float* b, float* c, const GemmEpilogue& epilogue) const {
  const int64_t m = swapped_ ? n_ : m_;
  const int64_t n = swapped_ ? m_ : n_;
  const int64_t grain = std::max<int64_t>(kSerialWork / 4 / k_, 1);
  parallel_for(threads_, divide_up(m * n, grain), [&](int64_t task, int) {
    for (int64_t at = task * grain; at < std::min(m * n, (task + 1) * grain); ++at) {
      const int64_t i = at / n;
      const int64_t j = at % n;
      float value = kernels_->dot(a + i * k_, b + j * k_, k_);
      if (epilogue.column_bias != nullptr) value += epilogue.column_bias[j];
      c[at] = epilogue.relu && value < 0.0F ? 0.0F : value;
    }
  });
}

}  // namespace gpunn::cpu
