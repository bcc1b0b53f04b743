#pragma once

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gpunn {

// Repeats a system call that a signal interrupts: `call` returns a negative number and sets errno.
template <class Call>
auto retried(const Call& call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// The system's words for an errno, with advice where there is some: "No space left on device; free some".
std::string reason_of(int error);

// Owns a file descriptor and closes it at the end.
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
  // Closes it. False, with errno, if the file system reports a failed write only now.
  bool close();

 private:
  int descriptor_;
};

// Writes everything, whether the descriptor blocks or not. False, with errno, if that fails.
bool write_all(int descriptor, std::string_view text);
// Reads up to the end of the file or of `out`; negative, with errno, if that fails.
std::ptrdiff_t read_all(int descriptor, std::span<char> out);

}  // namespace gpunn
