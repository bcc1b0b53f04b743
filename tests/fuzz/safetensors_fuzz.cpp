// Weights in the format of safetensors.
#include "fuzz.hpp"
#include "storage/safetensors.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  gpunn::fuzz::expect_at_most_an_error(
      [&] { gpunn::storage::parse_safetensors(gpunn::fuzz::text_of(data, bytes), "fuzz.safetensors"); });
  return 0;
}
