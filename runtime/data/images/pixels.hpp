#pragma once

#include <gpunn/error.hpp>

#include <string>

namespace gpunn::data {

// The pixels of a damaged file that a decoder gives: none but an error (`all`), or those that can be read.
enum class Pixels { all, readable };

// Decodes by `decode(Pixels)`. A sound file is decoded once; only a damaged one is decoded again, with `damage`, for
// the pixels that can be read. `damage` then becomes the error.
template <class Decode>
auto decoded(std::string* damage, const Decode& decode) {
  try {
    return decode(Pixels::all);
  } catch (const Error& error) {
    if (damage == nullptr) throw;
    auto image = decode(Pixels::readable);
    *damage = error.what();
    return image;
  }
}

}  // namespace gpunn::data
