// Tables of tensors' names.
#include "fuzz.hpp"
#include "runs/name_table.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  gpunn::fuzz::expect_at_most_an_error(
      [&] { gpunn::training::NameTable::parse(gpunn::fuzz::text_of(data, bytes), "fuzz.yaml"); });
  return 0;
}
