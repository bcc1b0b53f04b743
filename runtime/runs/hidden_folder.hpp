#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "common/file_lock.hpp"

namespace gpunn::training {

// The folder's file ".lock"; nothing where another process holds it, or took the folder away.
std::optional<FileLock> lock_folder(const std::filesystem::path& folder);

// A new folder, locked, that is called ".NAME.gpunn-new" until it is complete. Where it never is, it goes with this
// object; what a killed process left is taken away when the next one is made beside it.
class HiddenFolder {
 public:
  // For a name that is free: a second one of the same name gets a number, "NAME-2".
  static std::shared_ptr<HiddenFolder> make(const std::filesystem::path& wanted);
  // For this name. Throws Error(usage) where it is taken.
  static std::shared_ptr<HiddenFolder> make_named(const std::filesystem::path& name);
  ~HiddenFolder();
  HiddenFolder(const HiddenFolder&) = delete;
  HiddenFolder& operator=(const HiddenFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const FileLock& lock() const { return lock_; }
  // Gives it its name, which it returns. It stays locked.
  std::filesystem::path publish();

 private:
  HiddenFolder(std::filesystem::path name, std::filesystem::path path, FileLock lock);
  static std::shared_ptr<HiddenFolder> try_make(const std::filesystem::path& name);

  std::filesystem::path name_;
  std::filesystem::path path_;
  FileLock lock_;
};

}  // namespace gpunn::training
