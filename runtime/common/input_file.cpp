#include "common/input_file.hpp"

#include <gpunn/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/escape.hpp"
#include "common/text.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

constexpr int kPatience = 5'000;  // ms for a pipe's writer
constexpr std::size_t kChunk = std::size_t{64} << 10;

[[noreturn]] void fail(const fs::path& file, const std::string& why) {
  throw Error("can't read " + escaped(file.string()) + ": " + why, ExitCode::missing);
}

// Without O_NONBLOCK, opening a pipe without a writer would hang.
FileDescriptor open_for_reading(const fs::path& file, struct stat& info) {
  FileDescriptor descriptor(retried([&] { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (!descriptor || ::fstat(descriptor.get(), &info) != 0) fail(file, reason_of(errno));
  if (S_ISDIR(info.st_mode)) fail(file, "it is a folder");
  return descriptor;
}

// A pipe that never had a writer shows nothing at all.
void wait_for_writer(const fs::path& file, int descriptor) {
  pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
  const int found = retried([&] { return ::poll(&ready, 1, kPatience); });
  if (found < 0) fail(file, reason_of(errno));
  if (found == 0) fail(file, "it is a pipe or a device, and nothing came from it in 5 s");
}

}  // namespace

InputFile::InputFile(const fs::path& file) : path_(file) {
  struct stat info {};
  descriptor_ = open_for_reading(file, info);
  if (!S_ISREG(info.st_mode)) fail(file, "it is not a regular file; copy its contents into one");
  bytes_ = static_cast<uint64_t>(info.st_size);
}

std::size_t InputFile::read(std::span<std::byte> out) {
  const std::ptrdiff_t got = read_all(descriptor_.get(), {reinterpret_cast<char*>(out.data()), out.size()});
  if (got < 0) fail(path_, reason_of(errno));
  return static_cast<std::size_t>(got);
}

void InputFile::seek(uint64_t offset) {
  if (::lseek(descriptor_.get(), static_cast<off_t>(offset), SEEK_SET) < 0) fail(path_, reason_of(errno));
}

std::string read_text(const fs::path& file, std::size_t limit) {
  struct stat info {};
  const FileDescriptor descriptor = open_for_reading(file, info);
  const auto too_large = [&] {
    return Error("can't read " + escaped(file.string()) + ": larger than the " + human_bytes(limit) + " allowed here");
  };
  const bool regular = S_ISREG(info.st_mode);
  std::size_t room = kChunk;
  if (regular) {
    if (static_cast<uint64_t>(info.st_size) > limit) throw too_large();
    room = static_cast<std::size_t>(info.st_size) + 1;  // one more, to see the end without growing
  } else {
    wait_for_writer(file, descriptor.get());
  }
  std::string text;
  std::size_t used = 0;
  while (true) {
    if (used == text.size()) text.resize(used + room);
    room = kChunk;
    const ssize_t got = retried([&] { return ::read(descriptor.get(), text.data() + used, text.size() - used); });
    if (got < 0 && errno == EAGAIN && !regular) {
      wait_for_writer(file, descriptor.get());
      continue;
    }
    if (got < 0) fail(file, reason_of(errno));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > limit) throw too_large();
  }
  text.resize(used);
  return text;
}

PathKind kind_of(const fs::path& path) {
  struct stat info {};
  if (retried([&] { return ::stat(path.c_str(), &info); }) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return PathKind::absent;
    throw Error("can't look at " + escaped(path.string()) + ": " + reason_of(errno), ExitCode::missing);
  }
  if (S_ISREG(info.st_mode)) return PathKind::file;
  return S_ISDIR(info.st_mode) ? PathKind::folder : PathKind::other;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code failure;
  fs::path absolute = fs::absolute(path, failure);
  if (failure) throw Error("can't tell where " + path.string() + " is: " + failure.message());
  return absolute;
}

}  // namespace gpunn
