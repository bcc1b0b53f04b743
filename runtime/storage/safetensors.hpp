#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn::storage {

// Weights in the format of Hugging Face's safetensors: a length of 8 bytes, little-endian; that many bytes of JSON with
// each tensor's type, shape and place; then the values.
struct Safetensors {
  std::vector<StoredTensor> tensors;            // by their place in the file
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// F16, BF16 and F64 become f32; integers and bytes stay. The file is not trusted: throws Error(missing) if it can't be
// read, and Error, with the mistake, if its sizes don't fit the file, values overlap or leave gaps, a name occurs
// twice, or a type is none of the above.
Safetensors load_safetensors(const std::filesystem::path& file);
// The same of the bytes of a file; `origin` names it in errors.
Safetensors parse_safetensors(std::string_view bytes, const std::string& origin);

// Writes beside `file` and renames, as save_checkpoint does. Tensors of any type but f16 and bf16, which nothing here
// makes.
void save_safetensors(const std::filesystem::path& file, const Safetensors& content);

}  // namespace gpunn::storage
