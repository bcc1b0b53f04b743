// Access to the user's files and folders. A packed folder (a file ending in .gpack) is a folder like any other:
// "photos.gpack/train/cat/1.jpg" is a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::data::files {

// The content of a file: in its own memory, or inside a packed folder.
class Content {
 public:
  explicit Content(std::string text) : text_(std::move(text)) {}
  Content(std::shared_ptr<const void> keeper, std::span<const uint8_t> bytes)
      : keeper_(std::move(keeper)), bytes_(bytes) {}
  std::span<const uint8_t> bytes() const {
    return keeper_ != nullptr ? bytes_ : std::span(reinterpret_cast<const uint8_t*>(text_.data()), text_.size());
  }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }

 private:
  std::string text_;
  std::shared_ptr<const void> keeper_;
  std::span<const uint8_t> bytes_;
};

// Throws Error(missing) if it can't be read, and Error if it is larger than `limit` bytes.
Content read(const std::filesystem::path& file, std::size_t limit);
std::string read_text(const std::filesystem::path& file, std::size_t limit = std::size_t{64} << 20);
uint64_t size(const std::filesystem::path& file);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool path_exists(const std::filesystem::path& path);

// The names of the folders in a folder, sorted, without hidden ones and those that systems make for themselves. Throws
// Error(missing) if it can't be listed.
std::vector<std::string> folders_in(const std::filesystem::path& folder);
// Calls `take` for each file in a folder and its subfolders. Skips hidden files and does not follow links to folders.
void each_file_beneath(const std::filesystem::path& folder,
                       const std::function<void(const std::filesystem::path& file)>& take);
// Whether `test` is true of any of these files, or of one in the folder itself.
bool any_file_beneath(const std::filesystem::path& folder,
                      const std::function<bool(const std::filesystem::path& file)>& test);
bool any_file_in(const std::filesystem::path& folder,
                 const std::function<bool(const std::filesystem::path& file)>& test);

}  // namespace gpunn::data::files
