// How work is cut for the thread team: by the shape alone, never by the number of threads, so that results do not
// depend on it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpunn::cpu {

// Elements of a memory-bound task: some ten microseconds, several times what starting the team costs. A multiple of any
// vector, so that an element is always computed by the same code.
constexpr int64_t kGrain = 16384;

// Rows (planes, images) of `size` elements that make up a task.
constexpr int64_t rows_per_task(int64_t size, int64_t grain = kGrain) {
  return std::max<int64_t>(1, grain / std::max<int64_t>(1, size));
}

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// The size of as few blocks as blocks of `largest` would be, all nearly equal.
constexpr int64_t even_block(int64_t total, int64_t largest) {
  return divide_up(total, std::max<int64_t>(divide_up(total, largest), 1));
}

}  // namespace gpunn::cpu
