#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/input_file.hpp"

namespace gpunn {

// Throws Error(usage) where write_atomically() could not write the file: known before the work that it is to tell of.
// `kept` are files that must stay as they are, under whatever name.
void require_writable(const std::filesystem::path& file, const std::vector<std::filesystem::path>& kept = {});

// The new content of a file, on its way to the disk. Throws Error "can't write FILE: why".
class OutputFile {
 public:
  void write(std::string_view bytes);

 private:
  friend void write_atomically(const std::filesystem::path& file, const std::function<void(OutputFile&)>& fill);
  OutputFile(const std::filesystem::path& file, FileDescriptor descriptor)
      : file_(file), descriptor_(std::move(descriptor)) {}

  const std::filesystem::path& file_;
  FileDescriptor descriptor_;
};

// Writes a temporary file beside `file`, flushes it to disk and renames it; on failure `file` is unchanged. First
// removes temporary files that killed processes have left.
void write_atomically(const std::filesystem::path& file, std::string_view text);
void write_atomically(const std::filesystem::path& file, const std::function<void(OutputFile&)>& fill);

// Makes `file` another name of what `from` holds now, which a later write_atomically() to either leaves to the other.
// False, and nothing is changed, where the file system has no second names (hard links).
bool link_atomically(const std::filesystem::path& from, const std::filesystem::path& file);

// Creates the folder and its parents. Throws Error "can't make the folder FOLDER: why". (The C++ library reports a
// folder as missing if it could not look.)
void make_folders(const std::filesystem::path& folder);

// Appends to the file, which is created if it is missing. If this throws, a part of the text may be in the file.
void append(const std::filesystem::path& file, std::string_view text);

}  // namespace gpunn
