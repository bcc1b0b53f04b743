#pragma once

#include <gpunn/model_info.hpp>

#include <stdexcept>
#include <string>
#include <string_view>

namespace gpunn::storage {

// The mistake in a text. The caller, who knows the file, puts its name in front.
class ModelInfoFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One JSON object, as docs/checkpoint-format.md describes it. Bytes of names that are not UTF-8 become U+FFFD.
std::string model_info_text(const ModelInfo& info);

// The text is not believed: throws ModelInfoFailure naming the member that is missing, of another type, or beyond any
// model's size. Members that are not known are passed over.
ModelInfo parse_model_info(std::string_view text);

// `name` as model_info_text() writes it, and as it is read back.
std::string as_utf8(const std::string& name);

}  // namespace gpunn::storage
