#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace gpunn {

// The whole file. Throws Error(missing) where it can't be read, and Error where it is larger than `limit` bytes.
std::string read_text(const std::filesystem::path& file, std::size_t limit = std::size_t{64} << 20);
// Throws Error(usage) where write_atomically() could not write the file: known before the work that it is to tell of.
void require_writable(const std::filesystem::path& file);
// Writes a temporary file beside `file`, flushes it to disk and renames it; on failure `file` is as it was.
void write_atomically(const std::filesystem::path& file, std::string_view text);
// The same for a writer that wants a path: `write` fills the file at the path it is given.
void replace_atomically(const std::filesystem::path& file,
                        const std::function<void(const std::filesystem::path&)>& write);

}  // namespace gpunn
