// CUMSUM and TRIL. Neighbouring lines of a sum, which lie side by side in memory, are added up together: a vector of
// sums takes one row of elements after another.
#include "common/scan.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>

#include "add_op.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kLinesTogether = 64;

template <class T>
void add_up(const CumulativeSum& sum, const T* x, T* y, int64_t count) {
  double total[kLinesTogether] = {};  // in f32 the rounding errors of a long line would add up
  for (int64_t i = 0; i < sum.size; ++i, x += sum.step(), y += sum.step()) {
    for (int64_t line = 0; line < count; ++line) {
      const double before = total[line];
      total[line] += static_cast<double>(static_cast<float>(x[line]));
      y[line] = static_cast<T>(static_cast<float>(sum.exclusive ? before : total[line]));
    }
  }
}

template <class T>
void run_cumsum(const CumulativeSum& sum, const OpArgs& args) {
  parallel_ranges(sum.lines(), rows_per_task(sum.size), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end;) {
      const int64_t count = std::min({kLinesTogether, end - line, sum.inner - line % sum.inner});
      add_up(sum, args.in<T>(0) + sum.first(line), args.out<T>(0) + sum.first(line), count);
      line += count;
    }
  });
}

template <class T>
void run_tril(const Triangle& triangle, const OpArgs& args) {
  const int64_t columns = triangle.columns;
  parallel_ranges(triangle.matrices * triangle.rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t in_matrix = row % triangle.rows;
      const T* x = args.in<T>(0) + row * columns;
      T* y = args.out<T>(0) + row * columns;
      const int64_t first = std::clamp<int64_t>(triangle.upper ? in_matrix + triangle.diagonal : 0, 0, columns);
      const int64_t last =
          triangle.upper ? columns : std::clamp<int64_t>(in_matrix + triangle.diagonal + 1, 0, columns);
      std::fill(y, y + first, T(0.0F));
      if (x != y) std::copy(x + first, x + last, y + first);
      std::fill(y + last, y + columns, T(0.0F));
    }
  });
}

}  // namespace

void add_scan_kernels(plugin::Device& device) {
  serve(device, GPUNN_OP_CUMSUM, cumulative_sum_of, each_floating([](auto x) { return run_cumsum<decltype(x)>; }),
        Dtypes::floating);
  serve(device, GPUNN_OP_TRIL, triangle_of, each_floating([](auto x) { return run_tril<decltype(x)>; }),
        Dtypes::floating);
}

}  // namespace gpunn::cpu
