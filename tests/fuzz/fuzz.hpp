#pragma once

#include <gpunn/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

// What a target is made of: libFuzzer calls LLVMFuzzerTestOneInput() with one input after the other. All that may come
// of one is a gpunn::Error.
namespace gpunn::fuzz {

inline std::string_view text_of(const uint8_t* data, std::size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

template <class Action>
void expect_at_most_an_error(const Action& action) {
  try {
    action();
  } catch (const Error&) {  // with a message, for a person
  }
}

// A file in memory with these bytes, for what takes a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("gpunn-fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// A folder in memory, where the system has such; removed at the end of the process.
struct Folder {
  std::filesystem::path path;
  Folder() {
    const std::filesystem::path memory = "/dev/shm";
    std::string name =
        (std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path()) / "gpunn-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace gpunn::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes);
