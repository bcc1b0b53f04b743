// Checkpoints, in HDF5.
#include "fuzz.hpp"
#include "storage/checkpoint.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const gpunn::fuzz::MemoryFile file(gpunn::fuzz::text_of(data, bytes));
  gpunn::fuzz::expect_at_most_an_error([&] { gpunn::storage::load_checkpoint(file.path()); });
  return 0;
}
