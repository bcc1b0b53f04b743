#include "copy.hpp"

#include <gpunn/float_formats.hpp>
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// C's conversion; where C leaves it undefined (a float beyond an integer type) the nearest value, 0 for NaN.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<From, BFloat16> || std::is_same_v<From, Half>) {
    return convert<To, float>(value);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const From beyond = std::numeric_limits<To>::digits == 63   ? From(9223372036854775808.0)
                        : std::numeric_limits<To>::digits == 31 ? From(2147483648.0)
                                                                : From(256.0);
    if (std::isnan(value)) return 0;
    if (value >= beyond) return std::numeric_limits<To>::max();
    if (value <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, BFloat16> || std::is_same_v<To, Half>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void copy_elements(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t n) {
  const auto* from = static_cast<const From*>(x);
  auto* to = static_cast<To*>(y);
  if (x_stride == 1 && y_stride == 1) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(To));
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i * y_stride] = convert<To>(from[i * x_stride]);
}

template <class From>
CopyRun choose_to(int32_t to) {
  switch (to) {
    case GPUNN_F32:
      return copy_elements<From, float>;
    case GPUNN_BF16:
      return copy_elements<From, BFloat16>;
    case GPUNN_F16:
      return copy_elements<From, Half>;
    case GPUNN_I32:
      return copy_elements<From, int32_t>;
    case GPUNN_I64:
      return copy_elements<From, int64_t>;
    case GPUNN_U8:
      return copy_elements<From, uint8_t>;
    default:
      return nullptr;
  }
}

CopyRun choose_run(int32_t from, int32_t to) {
  switch (from) {
    case GPUNN_F32:
      return choose_to<float>(to);
    case GPUNN_BF16:
      return choose_to<BFloat16>(to);
    case GPUNN_F16:
      return choose_to<Half>(to);
    case GPUNN_I32:
      return choose_to<int32_t>(to);
    case GPUNN_I64:
      return choose_to<int64_t>(to);
    case GPUNN_U8:
      return choose_to<uint8_t>(to);
    default:
      return nullptr;
  }
}

// Elements along either side of a block that is transposed: it and its copy stay in the first-level cache.
constexpr int64_t kTransposedSide = 64;

TransposingCopy choose_transpose(int32_t from, int32_t to) {
  const CopyKernels& kernels = GPUNN_SELECT_ISA(copy_kernels);
  if (from == GPUNN_F32) return to == GPUNN_F32 ? kernels.f32 : to == GPUNN_BF16 ? kernels.f32_to_bf16 : nullptr;
  if (from == GPUNN_BF16) return to == GPUNN_BF16 ? kernels.bf16 : to == GPUNN_F32 ? kernels.bf16_to_f32 : nullptr;
  return nullptr;
}

// The dimension along which x's elements are neighbours, where those of y are so along the last; -1 if it is the same
// one or there is none.
int32_t columns_of(const Copy& loops) {
  const int32_t last = loops.rank - 1;
  if (loops.y_stride[last] != 1 || loops.x_stride[last] == 1) return -1;
  for (int32_t i = 0; i < last; ++i) {
    if (loops.x_stride[i] == 1) return i;
  }
  return -1;
}

// Where element `index` of the dimensions in `loops` is, `skipped` and the last one left out.
struct Place {
  int64_t x = 0;
  int64_t y = 0;

  Place(const Copy& loops, int32_t skipped, int64_t index) {
    for (int32_t i = loops.rank - 2; i >= 0; --i) {
      if (i == skipped) continue;
      x += index % loops.dim[i] * loops.x_stride[i];
      y += index % loops.dim[i] * loops.y_stride[i];
      index /= loops.dim[i];
    }
  }
};

void run_transposed(const CopyPlan& plan, const char* x, char* y) {
  const Copy& loops = plan.loops;
  const int32_t last = loops.rank - 1;
  const int64_t rows = loops.dim[last];
  const int64_t columns = loops.dim[plan.columns];
  const int64_t row_stride = loops.x_stride[last];
  const int64_t column_stride = loops.y_stride[plan.columns];
  const int64_t row_blocks = divide_up(rows, kTransposedSide);
  const int64_t blocks = row_blocks * divide_up(columns, kTransposedSide);
  const int64_t block_elements = std::min(rows, kTransposedSide) * std::min(columns, kTransposedSide);
  parallel_ranges(loops.n / (rows * columns) * blocks, rows_per_task(block_elements), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const Place place(loops, plan.columns, block / blocks);
      const int64_t row = block % row_blocks * kTransposedSide;
      const int64_t column = block % blocks / row_blocks * kTransposedSide;
      plan.transpose(x + (place.x + row * row_stride + column) * plan.x_size, row_stride,
                     y + (place.y + column * column_stride + row) * plan.y_size, column_stride,
                     std::min(kTransposedSide, rows - row), std::min(kTransposedSide, columns - column));
    }
  });
}

}  // namespace

CopyPlan plan_copy(const OpDesc& desc) { return plan_loops(copy_of(desc)); }

CopyPlan plan_loops(const Copy& made) {
  CopyPlan plan;
  plan.loops = made;
  plan.x_size = static_cast<int64_t>(ops::dtype_bytes(made.from));
  plan.y_size = static_cast<int64_t>(ops::dtype_bytes(made.to));
  plan.columns = columns_of(made);
  if (plan.columns >= 0 && made.n > 0) plan.transpose = choose_transpose(made.from, made.to);
  if (plan.transpose != nullptr) return plan;
  plan.run = choose_run(made.from, made.to);
  const int32_t last = made.rank - 1;
  if (last > 0 && made.from == made.to && made.x_stride[last] == 1 && made.y_stride[last] == 1) {
    plan.rows = GPUNN_SELECT_ISA(copy_kernels).rows;
    return plan;
  }
  // Runs of few elements cost more than their elements, as those of the nine taps of a filter.
  constexpr int64_t kShortRun = 32;
  if (last > 0 && made.dim[last] < kShortRun && made.dim[last - 1] > made.dim[last]) {
    std::swap(plan.loops.dim[last], plan.loops.dim[last - 1]);
    std::swap(plan.loops.x_stride[last], plan.loops.x_stride[last - 1]);
    std::swap(plan.loops.y_stride[last], plan.loops.y_stride[last - 1]);
  }
  return plan;
}

void run_copy(const CopyPlan& plan, const OpArgs& args) { run_loops(plan, args.in<char>(0), args.out<char>(0)); }

void run_loops(const CopyPlan& plan, const void* from_x, void* to_y) {
  const Copy& loops = plan.loops;
  const auto* x = static_cast<const char*>(from_x);
  auto* y = static_cast<char*>(to_y);
  if (plan.transpose != nullptr) return run_transposed(plan, x, y);
  const int32_t inner = loops.rank - 1;
  const int64_t inner_size = loops.dim[inner];
  int64_t outer_size = 1;
  for (int32_t i = 0; i < inner; ++i) outer_size *= loops.dim[i];
  if (outer_size == 0 || inner_size == 0) return;

  if (outer_size == 1) {
    parallel_ranges(inner_size, kGrain, [&](int64_t begin, int64_t end) {
      plan.run(x + begin * loops.x_stride[0] * plan.x_size, loops.x_stride[0],
               y + begin * loops.y_stride[0] * plan.y_size, loops.y_stride[0], end - begin);
    });
    return;
  }
  parallel_ranges(outer_size, rows_per_task(inner_size), [&](int64_t begin, int64_t end) {
    int64_t position[GPUNN_MAX_RANK] = {};
    int64_t rest = begin;
    int64_t from = 0;
    int64_t to = 0;
    for (int32_t i = inner - 1; i >= 0; --i) {
      position[i] = rest % loops.dim[i];
      rest /= loops.dim[i];
      from += position[i] * loops.x_stride[i];
      to += position[i] * loops.y_stride[i];
    }
    for (int64_t row = begin; row < end;) {
      int64_t count = 1;
      if (plan.rows != nullptr) {
        count = std::min(end - row, loops.dim[inner - 1] - position[inner - 1]);
        plan.rows(x + from * plan.x_size, loops.x_stride[inner - 1] * plan.x_size, y + to * plan.y_size,
                  loops.y_stride[inner - 1] * plan.y_size, count, inner_size * plan.x_size);
      } else {
        plan.run(x + from * plan.x_size, loops.x_stride[inner], y + to * plan.y_size, loops.y_stride[inner],
                 inner_size);
      }
      row += count;
      for (int32_t i = inner - 1; i >= 0; --i) {
        from += count * loops.x_stride[i];
        to += count * loops.y_stride[i];
        position[i] += count;
        if (position[i] < loops.dim[i]) break;
        from -= loops.dim[i] * loops.x_stride[i];
        to -= loops.dim[i] * loops.y_stride[i];
        position[i] = 0;
        count = 1;
      }
    }
  });
}

}  // namespace gpunn::cpu
