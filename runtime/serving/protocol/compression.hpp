#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpunn::serving {

enum class Coding { identity, gzip, deflate };

// What Content-Encoding names. Throws ServiceError(400) where it is none of these.
Coding coding_of(std::string_view content_encoding);
// The best that Accept-Encoding allows.
Coding accepted_coding(std::string_view accept_encoding);
std::string_view name_of(Coding coding);

// The bytes behind a gzip or zlib stream. Throws ServiceError: 400 where they are damaged, 413 where they are more than
// `most`, before memory for them is taken.
std::string decompress(std::string_view bytes, std::size_t most);
std::string compress(std::string_view bytes, Coding coding);  // gzip or deflate

}  // namespace gpunn::serving
