#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::serving {

// A tensor of a request. Its values are bytes of the request's body, or `numbers` if they came as JSON.
struct InferInput {
  std::string name, datatype;
  Shape shape;
  bool has_shape = false, has_data = false, in_shared_memory = false;
  std::optional<uint64_t> binary_bytes = {};  // as binary_data_size says
  std::string_view binary = {};               // of the body
  bool floating = false;                      // `numbers` are bits of doubles, else of int64_t
  std::vector<uint64_t> numbers = {};
};

struct InferOutput {
  std::string name;
  std::optional<bool> binary = {};
  int64_t classes = 0;  // of the classification extension; 0: the tensor itself
  bool in_shared_memory = false;
};

struct InferRequest {
  std::string id;
  std::vector<InferInput> inputs;
  std::vector<InferOutput> outputs;  // empty: all
  bool binary_outputs = false;       // of those that do not say
  uint64_t timeout_us = 0;           // 0: the service's
};

// Reads the body of an inference request of the Open Inference Protocol v2. `header_bytes` is what
// Inference-Header-Content-Length says: the length of the JSON, behind which the binary tensors follow; none: all of
// the body is JSON. The request points into `body`. Throws ServiceError(400). Takes at most five times the body's
// bytes.
InferRequest parse_infer_request(std::string_view body, std::optional<std::size_t> header_bytes);

// The values of an input as packed elements of `type`, which fit its shape: `rows` points into the body, or into
// `converted`. Throws ServiceError(400) if there are too few or too many, or if one is out of the type's range.
std::string_view packed_values(const InferInput& input, DType type, std::string& converted);

}  // namespace gpunn::serving
