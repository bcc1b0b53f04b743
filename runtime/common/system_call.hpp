#pragma once

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gpunn {

// Calls again what a signal interrupted: `call` returns a negative number and sets errno, as system calls do.
template <class Call>
auto retried(const Call& call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// The system's words for an errno, and what to do about it where that is plain: "No space left on device; free some".
std::string reason_of(int error);

// A descriptor of its own, closed at the end.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  // False, with errno, where the file system tells of a failed write only now.
  bool close();

 private:
  int descriptor_;
};

// All of it, whether the descriptor blocks or not. False, with errno, where it can't be written.
bool write_all(int descriptor, std::string_view text);
// Up to the end of the file or of `out`; negative, with errno, where it can't be read.
std::ptrdiff_t read_all(int descriptor, std::span<char> out);

}  // namespace gpunn
