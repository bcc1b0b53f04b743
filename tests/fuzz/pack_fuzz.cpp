// The index of a packed folder.
#include "data/pack/packed_folder.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const std::string_view text = gpunn::fuzz::text_of(data, bytes);
  constexpr uint64_t kContentsEnd = 1'000'000;
  gpunn::fuzz::expect_at_most_an_error([&] {
    const gpunn::data::PackIndex index = gpunn::data::decode_index(text, kContentsEnd, "photos.gpack");
    if (gpunn::data::encode_index(index) != text) std::abort();
  });
  return 0;
}
