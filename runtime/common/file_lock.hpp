#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/system_call.hpp"

namespace gpunn {

// A file, made where it is not there, that one process at a time holds: until it ends, however it ends. On a file
// system without locks, as some networks' are, any number of them do.
class FileLock {
 public:
  // Nothing where another process holds it, or took the file or its folder away meanwhile.
  static std::optional<FileLock> take(const std::filesystem::path& file);

  // Why the file system can't lock, in the system's words; empty: it can.
  const std::string& failure() const { return failure_; }

 private:
  FileLock(FileDescriptor descriptor, std::string failure);
  FileDescriptor descriptor_;
  std::string failure_;
};

}  // namespace gpunn
