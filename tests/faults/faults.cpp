// Loaded into a program with LD_PRELOAD: makes its Nth operation on files fail, as a disk or a network does. Only files
// under one folder count, or those of relative paths, so that libraries and /proc keep working. Environment variables:
//
//   GPUNN_FAULTS_UNDER    the folder
//   GPUNN_FAULTS_AT       N, from 1
//   GPUNN_FAULTS_KIND     EIO, ENOSPC, EINTR, ENOLCK; or short: reads and writes of half the bytes
//   GPUNN_FAULTS_LASTING  1: all after the Nth fail, too
//   GPUNN_FAULTS_LOG      a file that gets a line for each fault: "12 write /tmp/x/last.h5.tmp-1-0"
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int kMostDescriptors = 4096;

enum Kinds : unsigned { kReads = 1, kWrites = 2, kInterruptible = 4, kLocks = 8 };

// Read at the first operation, which may be before any constructor ran.
struct Settings {
  std::string_view under, kind;
  long at = 0;
  bool lasting = false;
  int log = -1;

  Settings() {
    const auto text = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string_view(value == nullptr ? "" : value);
    };
    under = text("GPUNN_FAULTS_UNDER");
    kind = text("GPUNN_FAULTS_KIND");
    at = std::atol(text("GPUNN_FAULTS_AT").data());
    lasting = text("GPUNN_FAULTS_LASTING") == "1";
    if (const std::string_view file = text("GPUNN_FAULTS_LOG"); !file.empty()) {
      log = static_cast<int>(
          ::syscall(SYS_openat, AT_FDCWD, file.data(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    }
  }
};

const Settings& settings() {
  static const Settings one;
  return one;
}

std::atomic<long> count{0};
std::array<std::atomic<bool>, kMostDescriptors> watched{};

bool is_watched(const char* path) {
  const std::string_view under = settings().under;
  if (under.empty() || path == nullptr) return false;
  return path[0] != '/' || std::string_view(path).starts_with(under);
}
bool is_watched(int descriptor) { return descriptor >= 0 && descriptor < kMostDescriptors && watched[descriptor]; }

int watch(int descriptor, bool wanted) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) watched[descriptor] = wanted;
  return descriptor;
}

int error_of(std::string_view kind, unsigned may) {
  if (kind == "EIO") return EIO;
  if (kind == "ENOSPC" && (may & kWrites) != 0) return ENOSPC;
  if (kind == "EINTR" && (may & kInterruptible) != 0) return EINTR;
  if (kind == "ENOLCK" && (may & kLocks) != 0) return ENOLCK;
  return 0;
}

// Whether this operation is one that fails; only those that can fail in the way asked for are counted.
bool is_hit(const char* what, const char* path) {
  const long number = ++count;
  const bool hit = number == settings().at || (settings().lasting && number > settings().at);
  if (hit && settings().log >= 0) {
    std::array<char, 512> line{};
    const int length = std::snprintf(line.data(), line.size(), "%ld %s %s\n", number, what, path);
    ::syscall(SYS_write, settings().log, line.data(),
              std::min<std::size_t>(static_cast<std::size_t>(length), line.size() - 1));
  }
  return hit;
}

bool fails(const char* what, const char* path, unsigned may) {
  const int error = error_of(settings().kind, may);
  if (error == 0 || !is_hit(what, path)) return false;
  errno = error;
  return true;
}

// The path of a descriptor, for the log.
struct Name {
  std::array<char, 256> text{};
  explicit Name(int descriptor) {
    std::array<char, 64> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
    ::syscall(SYS_readlinkat, AT_FDCWD, link.data(), text.data(), text.size() - 1);
  }
};

bool fails(const char* what, int descriptor, unsigned may) {
  return is_watched(descriptor) && fails(what, Name(descriptor).text.data(), may);
}

std::size_t shortened(const char* what, int descriptor, std::size_t bytes) {
  if (settings().kind != "short" || bytes < 2 || !is_watched(descriptor)) return bytes;
  return is_hit(what, Name(descriptor).text.data()) ? bytes / 2 : bytes;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

int open_in(int folder, const char* path, int flags, mode_t mode) {
  const bool ours = is_watched(path);
  const unsigned may = kReads | kInterruptible | ((flags & O_CREAT) != 0 ? unsigned{kWrites} : 0U);
  if (ours && fails("open", path, may)) return -1;
  return watch(static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode)), ours);
}

mode_t mode_in(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

// Visible, whatever the build says.
#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_in(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_in(folder, path, flags, mode);
}

// The system closes the descriptor in any case.
int close(int descriptor) {
  const bool failed = fails("close", descriptor, kWrites | kInterruptible);
  const int error = errno;
  watch(descriptor, false);
  const int result = static_cast<int>(::syscall(SYS_close, descriptor));
  if (failed) errno = error;
  return failed ? -1 : result;
}

ssize_t read(int descriptor, void* out, std::size_t bytes) {
  if (fails("read", descriptor, kReads | kInterruptible)) return -1;
  return ::syscall(SYS_read, descriptor, out, shortened("read", descriptor, bytes));
}

ssize_t pread(int descriptor, void* out, std::size_t bytes, off_t at) {
  if (fails("pread", descriptor, kReads | kInterruptible)) return -1;
  return ::syscall(SYS_pread64, descriptor, out, shortened("pread", descriptor, bytes), at);
}

ssize_t write(int descriptor, const void* from, std::size_t bytes) {
  if (fails("write", descriptor, kWrites | kInterruptible)) return -1;
  return ::syscall(SYS_write, descriptor, from, shortened("write", descriptor, bytes));
}

ssize_t pwrite(int descriptor, const void* from, std::size_t bytes, off_t at) {
  if (fails("pwrite", descriptor, kWrites | kInterruptible)) return -1;
  return ::syscall(SYS_pwrite64, descriptor, from, shortened("pwrite", descriptor, bytes), at);
}

int fsync(int descriptor) {
  if (fails("fsync", descriptor, kWrites | kInterruptible)) return -1;
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
  if (fails("fdatasync", descriptor, kWrites | kInterruptible)) return -1;
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

int ftruncate(int descriptor, off_t bytes) {
  if (fails("ftruncate", descriptor, kWrites | kInterruptible)) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, bytes));
}

int flock(int descriptor, int operation) {
  if (fails("flock", descriptor, kLocks | kInterruptible)) return -1;
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

int rename(const char* from, const char* to) {
  if (is_watched(to) && fails("rename", to, kWrites)) return -1;
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

int mkdir(const char* path, mode_t mode) {
  if (is_watched(path) && fails("mkdir", path, kWrites)) return -1;
  return static_cast<int>(::syscall(SYS_mkdir, path, mode));
}

int unlink(const char* path) {
  if (is_watched(path) && fails("unlink", path, kWrites)) return -1;
  return static_cast<int>(::syscall(SYS_unlink, path));
}

int fstat(int descriptor, struct stat* out) {
  if (fails("fstat", descriptor, kReads)) return -1;
  return static_cast<int>(::syscall(SYS_fstat, descriptor, out));
}

int stat(const char* path, struct stat* out) {
  if (is_watched(path) && fails("stat", path, kReads)) return -1;
  return static_cast<int>(::syscall(SYS_stat, path, out));
}

int lstat(const char* path, struct stat* out) {
  if (is_watched(path) && fails("lstat", path, kReads)) return -1;
  return static_cast<int>(::syscall(SYS_lstat, path, out));
}

void* mmap(void* wanted, std::size_t bytes, int protection, int flags, int descriptor, off_t at) {
  if (fails("mmap", descriptor, kReads)) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, wanted, bytes, protection, flags, descriptor, at));
}

DIR* opendir(const char* path) {
  if (is_watched(path) && fails("opendir", path, kReads)) return nullptr;
  return next<DIR*(const char*)>("opendir")(path);
}

// What the program's C++ library opens by stdio's names.
FILE* fopen(const char* path, const char* mode) {
  if (is_watched(path) && fails("fopen", path, kReads | (mode[0] == 'r' ? 0U : unsigned{kWrites}))) return nullptr;
  return next<FILE*(const char*, const char*)>("fopen")(path, mode);
}

// One and the same on 64-bit Linux.
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char* path, int flags, ...) __attribute__((alias("openat")));
ssize_t pread64(int descriptor, void* out, std::size_t bytes, off64_t at) __attribute__((alias("pread")));
ssize_t pwrite64(int descriptor, const void* from, std::size_t bytes, off64_t at) __attribute__((alias("pwrite")));
int ftruncate64(int descriptor, off64_t bytes) noexcept __attribute__((alias("ftruncate")));
FILE* fopen64(const char* path, const char* mode) __attribute__((alias("fopen")));

}  // extern "C"
#pragma GCC visibility pop
