#pragma once

#include <filesystem>

namespace gpunn {

// A name beside `file` to write its new content to ("<file>.tmp-<process>-<number>"), since a rename is atomic only
// within one file system. The file of that name is removed with the object, unless it has become worth keeping.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& file);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

// Removes the TemporaryFiles beside `file` that killed processes have left. Files of living processes stay. Reports no
// errors.
void remove_stale_temporaries(const std::filesystem::path& file) noexcept;

// The folder that `file` is in.
std::filesystem::path folder_of(const std::filesystem::path& file);

}  // namespace gpunn
