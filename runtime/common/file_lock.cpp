#include "common/file_lock.hpp"

#include <gpunn/error.hpp>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace gpunn {

FileLock::FileLock(FileDescriptor descriptor, std::string failure)
    : descriptor_(std::move(descriptor)), failure_(std::move(failure)) {}

std::optional<FileLock> FileLock::take(const std::filesystem::path& file) {
  FileDescriptor descriptor(retried([&] { return ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); }));
  if (!descriptor && errno == ENOENT) return std::nullopt;
  if (!descriptor) throw Error("can't write " + file.string() + ": " + reason_of(errno));
  if (retried([&] { return ::flock(descriptor.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    return FileLock(std::move(descriptor), reason_of(errno));
  }
  struct stat held {
  }, there{};
  const bool same = ::fstat(descriptor.get(), &held) == 0 && ::stat(file.c_str(), &there) == 0 &&
                    held.st_ino == there.st_ino && held.st_dev == there.st_dev;
  if (!same) return std::nullopt;
  return FileLock(std::move(descriptor), "");
}

}  // namespace gpunn
