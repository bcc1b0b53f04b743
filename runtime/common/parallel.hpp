#pragma once

#include <cstdint>
#include <functional>

namespace gpunn {

inline constexpr int64_t kMostThreads = 32;

// Calls work(first, last) for ranges of at most `stretch` rows that cover 0..rows, on all cores or `most_threads` of
// them. Threads take ranges in any order, so the result for a row must depend on that row only. Rethrows the exception
// of the lowest rows; later ranges may then be skipped.
void for_row_stretches(int64_t rows, int64_t stretch, const std::function<void(int64_t first, int64_t last)>& work,
                       int64_t most_threads = kMostThreads);

}  // namespace gpunn
