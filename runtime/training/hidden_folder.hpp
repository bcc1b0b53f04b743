#pragma once

#include <filesystem>
#include <memory>

namespace gpunn::training {

// A folder's file ".lock", held: by one process at a time, until it ends, however it ends.
class FolderLock {
 public:
  // Nothing where another process holds it, or took the folder away.
  static std::shared_ptr<FolderLock> take(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

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
  // Gives it its name, which it returns. It stays locked.
  std::filesystem::path publish();

 private:
  HiddenFolder(std::filesystem::path name, std::filesystem::path path, std::shared_ptr<FolderLock> lock);
  static std::shared_ptr<HiddenFolder> try_make(const std::filesystem::path& name);

  std::filesystem::path name_;
  std::filesystem::path path_;
  std::shared_ptr<FolderLock> lock_;
};

}  // namespace gpunn::training
