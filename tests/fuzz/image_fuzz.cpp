// PNG, JPEG and PNM images.
#include "data/images/image.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  gpunn::fuzz::expect_at_most_an_error([&] { gpunn::data::decode_image({data, bytes}, "fuzz"); });
  return 0;
}
