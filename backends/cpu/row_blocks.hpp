// Ops over rows, or planes of images: a task is some rows, of which a block is taken at a time. Blocks of half
// precision are computed in f32, in a strip of the workspace that each thread has for itself.
#pragma once

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>

#include "add_op.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {

struct RowBlocks {
  int64_t rows = 0;
  int64_t size = 0;   // elements of a row
  int64_t block = 1;  // rows of a block
  int64_t strip = 0;  // floats of a thread; 0 for f32
  int threads = 1;
  uint64_t strips_from = 0;  // bytes of the workspace in front of the strips

  uint64_t workspace_bytes() const { return strips_from + static_cast<uint64_t>(threads * strip) * sizeof(float); }

  // Calls body(first row, rows, the thread's strip, thread) for each block.
  template <class Body>
  void for_each_by_thread(const OpArgs& args, const Body& body) const {
    auto* const strips = reinterpret_cast<float*>(args.workspace<char>() + strips_from);
    const int64_t at_once = rows_per_task(size);
    parallel_for(threads, divide_up(rows, at_once), [&](int64_t task, int thread) {
      const int64_t end = std::min(rows, (task + 1) * at_once);
      for (int64_t row = task * at_once; row < end; row += block) {
        body(row, std::min(block, end - row), strips + thread * strip, thread);
      }
    });
  }

  // Calls body(first row, rows, the thread's strip) for each block.
  template <class Body>
  void for_each(const OpArgs& args, const Body& body) const {
    for_each_by_thread(args, [&body](int64_t row, int64_t some, float* own, int /*thread*/) { body(row, some, own); });
  }

  // Calls body(x, y) in f32 for each row of the first input and of the first output, of these sizes. A block is one
  // row, a strip both.
  template <class T, class Body>
  void for_each_wide(const OpArgs& args, int64_t x_size, int64_t y_size, const Body& body) const {
    for_each(args, [&](int64_t row, int64_t /*rows*/, float* wide_x) {
      float* const wide_y = wide_x + (strip > 0 ? x_size : 0);
      T* const y = args.out<T>(0) + row * y_size;
      body(as_wide(args.in<T>(0) + row * x_size, x_size, wide_x), wide_target(y, wide_y));
      put_narrow(wide_y, y, y_size);
    });
  }
};

}  // namespace gpunn::cpu
