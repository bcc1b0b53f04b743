#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/http/exchange.hpp"

namespace gpunn::serving {

// An output tensor of an answer: packed bytes.
struct OutputTensor {
  std::string_view name;
  DType dtype = DType::f32;
  Shape shape;  // with the rows
  std::string_view values;
  std::shared_ptr<const void> memory = {};  // of the values; an answer may share it
  bool binary = false;
  int64_t classes = 0;  // most of a row to tell as "value:index:label"; 0: the values
  std::span<const std::string> labels = {};
};

struct InferAnswer {
  std::string_view model, version, id;
  std::vector<OutputTensor> outputs;
};

struct EncodedAnswer {
  std::string body;
  std::vector<SharedBytes> rest = {};  // of the body, where its tensors are too large to be copied
  std::size_t header_bytes = 0;        // of the JSON
  bool has_binary = false;
};

// The body of an answer to an inference request. A value that is not finite is null in JSON.
EncodedAnswer encode_infer_answer(const InferAnswer& answer);

// Appends text as a JSON string; bytes that are not UTF-8 are replaced.
void append_json_string(std::string& json, std::string_view text);

}  // namespace gpunn::serving
