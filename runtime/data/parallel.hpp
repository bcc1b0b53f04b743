#pragma once

#include <cstdint>
#include <functional>

namespace gpunn::data {

inline constexpr int64_t kMostThreads = 32;

// Calls work(first, last) for stretches of at most `stretch` rows that cover 0..rows, on all cores, or `most_threads`
// of them. The stretches may go to threads in any order, so what is made of a row must depend on that row alone.
// Rethrows what work throws, of several throwers what the one of the lowest rows throws; stretches above that may then
// be left out.
void for_row_stretches(int64_t rows, int64_t stretch, const std::function<void(int64_t first, int64_t last)>& work,
                       int64_t most_threads = kMostThreads);

}  // namespace gpunn::data
