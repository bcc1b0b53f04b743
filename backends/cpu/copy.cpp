#include "copy.hpp"

#include <gpunn/float_formats.hpp>
#include <gpunn/op_signature.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "grain.hpp"
#include "parallel.hpp"

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

}  // namespace

CopyPlan plan_copy(const OpDesc& desc) { return plan_loops(copy_of(desc)); }

CopyPlan plan_loops(const Copy& made) {
  CopyPlan plan;
  plan.loops = made;
  // Runs of few elements cost more than their elements, as those of the nine taps of a filter.
  constexpr int64_t kShortRun = 32;
  const int32_t last = made.rank - 1;
  if (last > 0 && made.dim[last] < kShortRun && made.dim[last - 1] > made.dim[last]) {
    std::swap(plan.loops.dim[last], plan.loops.dim[last - 1]);
    std::swap(plan.loops.x_stride[last], plan.loops.x_stride[last - 1]);
    std::swap(plan.loops.y_stride[last], plan.loops.y_stride[last - 1]);
  }
  plan.run = choose_run(plan.loops.from, plan.loops.to);
  plan.x_size = static_cast<int64_t>(ops::dtype_bytes(plan.loops.from));
  plan.y_size = static_cast<int64_t>(ops::dtype_bytes(plan.loops.to));
  return plan;
}

void run_copy(const CopyPlan& plan, const OpArgs& args) { run_loops(plan, args.in<char>(0), args.out<char>(0)); }

void run_loops(const CopyPlan& plan, const void* from_x, void* to_y) {
  const Copy& loops = plan.loops;
  const auto* x = static_cast<const char*>(from_x);
  auto* y = static_cast<char*>(to_y);
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
    for (int64_t row = begin; row < end; ++row) {
      plan.run(x + from * plan.x_size, loops.x_stride[inner], y + to * plan.y_size, loops.y_stride[inner], inner_size);
      for (int32_t i = inner - 1; i >= 0; --i) {
        from += loops.x_stride[i];
        to += loops.y_stride[i];
        if (++position[i] < loops.dim[i]) break;
        from -= loops.dim[i] * loops.x_stride[i];
        to -= loops.dim[i] * loops.y_stride[i];
        position[i] = 0;
      }
    }
  });
}

}  // namespace gpunn::cpu
