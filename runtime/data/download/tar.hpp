#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "data/download/unpack.hpp"

namespace gpunn::data {

struct TarEntry {
  std::string name;    // as the archive has it: no path to write to
  uint64_t bytes = 0;  // at most what the archive can still hold
};

// Reads the regular files of a tar archive (POSIX.1-1988 ustar, plain or gzip) one after another, without a copy on the
// disk. Throws Error if the archive is damaged or truncated.
class TarReader {
 public:
  explicit TarReader(const std::filesystem::path& file) : file_(file), reader_(file) {}

  // The next file, after the unread rest of the previous one; empty at the end.
  std::optional<TarEntry> next();
  // Fills `out` from the file at hand; fewer bytes only at its end.
  std::size_t read(std::span<std::byte> out);

 private:
  void skip(uint64_t bytes);
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path file_;
  UnpackingReader reader_;
  std::string name_;
  uint64_t left_ = 0;     // of the file at hand
  uint64_t padding_ = 0;  // behind it
};

}  // namespace gpunn::data
