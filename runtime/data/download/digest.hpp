#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gpunn::data {

// SHA-256, in lower-case hexadecimal, of the content of a plain or gzip file. Throws Error if the content is not
// `bytes` bytes (unpacking stops there) or the packed stream is damaged.
std::string sha256_of_unpacked(const std::filesystem::path& file, uint64_t bytes);

// The same of the file as it is.
std::string sha256_of_file(const std::filesystem::path& file, uint64_t bytes);

}  // namespace gpunn::data
