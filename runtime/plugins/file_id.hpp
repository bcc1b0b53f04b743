#pragma once

#include <filesystem>
#include <optional>

#include <sys/stat.h>

namespace gpunn::plugins {

// Identifies the file at a path, through any links.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

inline std::optional<FileId> file_id(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

}  // namespace gpunn::plugins
