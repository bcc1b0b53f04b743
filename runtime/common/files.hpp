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

// Writes a temporary file beside `file`, flushes it to disk and renames it; on failure `file` is as it was. What killed
// processes left of their writing is removed first.
void write_atomically(const std::filesystem::path& file, std::string_view text);
void write_atomically(const std::filesystem::path& file, const std::function<void(OutputFile&)>& fill);

// The folder, and those it is in. Throws Error "can't make the folder FOLDER: why". (The C++ library's own says that a
// folder is not there where it could not look.)
void make_folders(const std::filesystem::path& folder);

// At the end of the file, which is made where it is not there. It may have got a part of the text if this throws.
void append(const std::filesystem::path& file, std::string_view text);

}  // namespace gpunn
