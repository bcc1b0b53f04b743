#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "common/system_call.hpp"

namespace gpunn {

// A regular file, opened for reading. All functions throw Error(missing) "can't read FILE: why".
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& file);

  const std::filesystem::path& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }  // when it was opened
  // Fills `out`; fewer only at the end.
  std::size_t read(std::span<std::byte> out);
  std::size_t read(std::span<char> out) { return read(std::as_writable_bytes(out)); }
  // Position of the next read.
  void seek(uint64_t offset);
  void rewind() { seek(0); }

 private:
  std::filesystem::path path_;
  FileDescriptor descriptor_;
  uint64_t bytes_ = 0;
};

// Reads a whole file, pipe or device. Throws Error(missing) if it can't be read, or if a pipe has no writer or a silent
// one; Error if it is larger than `limit` bytes.
std::string read_text(const std::filesystem::path& file, std::size_t limit = std::size_t{64} << 20);

// The kind of file at a path, after following links. Throws Error(missing) if that is unknown: no permission, a cycle
// of links, a name that is too long.
enum class PathKind { absent, file, folder, other };
PathKind kind_of(const std::filesystem::path& path);
inline bool path_exists(const std::filesystem::path& path) { return kind_of(path) != PathKind::absent; }
inline bool is_file(const std::filesystem::path& path) { return kind_of(path) == PathKind::file; }
inline bool is_folder(const std::filesystem::path& path) { return kind_of(path) == PathKind::folder; }

// The absolute path of a file. Throws Error if the working folder no longer exists.
std::filesystem::path absolute_path(const std::filesystem::path& path);

}  // namespace gpunn
