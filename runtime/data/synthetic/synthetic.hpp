#pragma once

#include <cstdint>

namespace gpunn::data {

// The number of rows to make: `asked`, or `usual` if that is 0. Throws Error(usage), with `key`, if it is negative or
// above ten million.
int64_t synthetic_rows(int64_t asked, int64_t usual, const char* key);

}  // namespace gpunn::data
