// IDX files, packed or not.
#include "data/published/idx.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const gpunn::fuzz::MemoryFile file(gpunn::fuzz::text_of(data, bytes));
  constexpr uint64_t kLimit = uint64_t{1} << 24;
  for (const int rank : {1, 3}) {
    gpunn::fuzz::expect_at_most_an_error([&] { gpunn::data::read_idx(file.path(), rank, kLimit); });
  }
  return 0;
}
