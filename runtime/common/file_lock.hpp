#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/system_call.hpp"

namespace gpunn {

// A lock file that one process at a time holds; created if it is missing. The system releases it when the process ends
// in any way. On a file system without locks, as some network file systems, several processes can hold it.
class FileLock {
 public:
  // Empty if another process holds it, or has removed the file or its folder meanwhile.
  static std::optional<FileLock> take(const std::filesystem::path& file);

  // Why the file system can't lock, in the system's words; empty: it can.
  const std::string& failure() const { return failure_; }

 private:
  FileLock(FileDescriptor descriptor, std::string failure);
  FileDescriptor descriptor_;
  std::string failure_;
};

}  // namespace gpunn
