#include "common/files.hpp"

#include <gpunn/error.hpp>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

std::string reason(int code) { return std::error_code(code, std::generic_category()).message(); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Some file systems tell of a failed write only here.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Deletes the file it names unless told that the file has become something worth keeping.
class TemporaryFile {
 public:
  explicit TemporaryFile(fs::path path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  fs::path path_;
};

[[noreturn]] void fail_to_write(const fs::path& file, const std::string& why) {
  throw Error("can't write " + file.string() + ": " + why);
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

// In the folder of `file`, since a rename is atomic only within one file system.
fs::path temporary_name(const fs::path& file) {
  static std::atomic<unsigned> counter{0};
  fs::path name = file.filename();
  name += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  return folder_of(file) / name;
}

void flush_file(const fs::path& path, const fs::path& shown) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) fail_to_write(shown, reason(errno));
}

// Makes the rename itself durable. File systems that can't flush a folder say EINVAL; the file is in place by then.
void flush_folder(const fs::path& folder, const fs::path& shown) {
  const FileDescriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) return;
  if (::fsync(handle.get()) != 0 && errno != EINVAL && errno != ENOTSUP) fail_to_write(shown, reason(errno));
}

}  // namespace

std::string read_text(const fs::path& file, std::size_t limit) {
  const auto missing = [&](const std::string& why) {
    return Error("can't read " + file.string() + ": " + why, ExitCode::missing);
  };
  // Without O_NONBLOCK, opening a pipe without a writer would hang.
  const FileDescriptor handle(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!handle) throw missing(reason(errno));
  struct stat info {};
  if (::fstat(handle.get(), &info) != 0) throw missing(reason(errno));
  if (S_ISDIR(info.st_mode)) throw missing("it is a folder");

  std::string text;
  const auto too_large = [&] {
    return Error("can't read " + file.string() + ": larger than the " + human_bytes(limit) + " allowed here");
  };
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  std::size_t room = kChunk;
  if (S_ISREG(info.st_mode)) {
    if (static_cast<uint64_t>(info.st_size) > limit) throw too_large();
    room = static_cast<std::size_t>(info.st_size) + 1;  // one more, to see the end without growing
  }
  std::size_t used = 0;
  while (true) {
    if (used == text.size()) text.resize(used + room);
    room = kChunk;
    const ssize_t got = ::read(handle.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw missing(reason(errno));
    used += static_cast<std::size_t>(got);
    if (used > limit) throw too_large();
    if (got == 0) break;
  }
  text.resize(used);
  return text;
}

void require_writable(const fs::path& file) {
  const auto fail = [&](const std::string& why) {
    throw Error("can't write " + file.string() + ": " + why, ExitCode::usage);
  };
  if (file.filename().empty()) fail("it is no file's name");
  std::error_code ignored;
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) fail("it is there, and no ordinary file");
  const fs::path folder = folder_of(file);
  if (!fs::is_directory(folder, ignored)) fail("there is no folder " + folder.string());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(reason(errno));
}

void replace_atomically(const fs::path& file, const std::function<void(const fs::path&)>& write) {
  // Renaming over a link would replace the link and leave what it points to as it was.
  std::error_code no_link;
  fs::path target = fs::is_symlink(file, no_link) ? fs::weakly_canonical(file) : file;
  TemporaryFile temporary(temporary_name(target));
  write(temporary.path());
  flush_file(temporary.path(), file);
  if (::rename(temporary.path().c_str(), target.c_str()) != 0) fail_to_write(file, reason(errno));
  temporary.keep();
  flush_folder(folder_of(target), file);
}

void write_atomically(const fs::path& file, std::string_view text) {
  replace_atomically(file, [&](const fs::path& temporary) {
    FileDescriptor handle(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!handle) fail_to_write(file, reason(errno));
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t put = ::write(handle.get(), rest.data(), rest.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_to_write(file, reason(errno));
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
    if (handle.close() != 0) fail_to_write(file, reason(errno));
  });
}

}  // namespace gpunn
