#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpunn::serving {

enum class Coding { identity, gzip, deflate };

// The encoding that Content-Encoding names. Throws ServiceError(400) for any other.
Coding coding_of(std::string_view content_encoding);
// The best that Accept-Encoding allows.
Coding accepted_coding(std::string_view accept_encoding);
std::string_view name_of(Coding coding);

// Unpacks a gzip or zlib stream. Throws ServiceError: 400 if it is damaged, 413, before it allocates memory, if it has
// more than `most` bytes.
std::string decompress(std::string_view bytes, std::size_t most);
std::string compress(std::string_view bytes, Coding coding);  // gzip or deflate

}  // namespace gpunn::serving
