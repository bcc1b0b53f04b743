#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::data {

// A folder in one file, as `gpunn data pack` writes it. Numbers are little-endian.
//
//   "gpunn pack 1\n\0\0\0"   16 bytes
//   the files' contents, one after the other, each at a multiple of 8
//   the index:               u64 length and the path of the folder (empty: it stands for itself), u64 files,
//                            u32 CRC-32 of its listing (folder_listing()); then a file each, sorted by path:
//                            u32 length and the path beneath the folder, u64 offset, u64 bytes, u32 CRC-32 of them
//   the end:                 u64 offset and u64 bytes of the index, u32 its CRC-32, "pack"    24 bytes
inline constexpr std::string_view kPackMagic("gpunn pack 1\n\0\0\0", 16), kPackEnd("pack");
inline constexpr std::size_t kPackTrailerBytes = 24;
inline constexpr const char* kPackEnding = ".gpack";

struct PackedFile {
  std::string path;
  uint64_t offset = 0, bytes = 0;
  uint32_t crc = 0;
};

// The header of a packed folder.
struct PackIndex {
  std::string folder;  // that it was made of; empty: it stands for itself
  uint64_t folder_files = 0;
  uint32_t folder_crc = 0;
  std::vector<PackedFile> files;
};
std::string encode_index(const PackIndex& index);
std::string encode_trailer(uint64_t index_offset, std::string_view index);
// For a file with this many bytes before the index. Throws Error with the mistake.
PackIndex decode_index(std::string_view bytes, uint64_t contents_end, const std::filesystem::path& file);

// How many files are beneath a folder, and a CRC-32 of their paths, sizes and times of change.
struct FolderListing {
  uint64_t files = 0;
  uint32_t crc = 0;
};
FolderListing folder_listing(const std::filesystem::path& folder);

// Mapped into memory for as long as it lives; any thread may read.
class PackedFolder {
 public:
  // Throws Error if the file is damaged or truncated, and if the folder that it was made of has changed since.
  explicit PackedFolder(const std::filesystem::path& file);
  ~PackedFolder();
  PackedFolder(const PackedFolder&) = delete;
  PackedFolder& operator=(const PackedFolder&) = delete;

  const std::vector<PackedFile>& files() const { return index_.files; }  // sorted by path
  const PackedFile* find(std::string_view path) const;                   // nullptr: it is not there
  bool has_folder(std::string_view path) const;
  // The content, which stays valid while this object lives. The first read checks its CRC-32 and throws Error if that
  // is wrong.
  std::span<const uint8_t> content(const PackedFile& file) const;

 private:
  void require_current() const;

  std::filesystem::path path_;
  std::span<const uint8_t> bytes_;
  PackIndex index_;
  mutable std::vector<uint8_t> checked_;  // by file; a race between two threads has both check it
};

}  // namespace gpunn::data
