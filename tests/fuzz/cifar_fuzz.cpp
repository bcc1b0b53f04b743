// CIFAR's batches, from a folder of files or from a packed archive: the first byte says which.
#include <gpunn/data.hpp>

#include <fstream>

#include "fuzz.hpp"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  static const gpunn::fuzz::Folder files, archive;
  const std::string_view content = gpunn::fuzz::text_of(data + 1, bytes - 1);
  const bool packed = data[0] % 2 == 1;
  if (packed) {
    write(archive.path / "cifar-10-binary.tar.gz", content);
  } else {
    for (const char* name :
         {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
      write(files.path / (std::string(name) + ".bin"), content);
    }
  }
  gpunn::DataConfig config;
  config.dataset = "cifar10";
  config.path = packed ? archive.path : files.path;
  gpunn::fuzz::expect_at_most_an_error([&] { gpunn::load_dataset(config); });
  return 0;
}
