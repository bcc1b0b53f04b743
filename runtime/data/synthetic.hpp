#pragma once

#include <cstdint>
#include <functional>

namespace gpunn::data {

// The number of rows to make: `asked`, or `usual` where that is 0. Throws Error(usage), naming `key`, where it is
// negative or beyond ten million.
int64_t synthetic_rows(int64_t asked, int64_t usual, const char* key);

// Calls make(first, last) for stretches that cover 0..rows, on all cores. The stretches may go to threads in any order,
// so what is made of a row must depend on that row alone.
void for_row_stretches(int64_t rows, const std::function<void(int64_t first, int64_t last)>& make);

}  // namespace gpunn::data
