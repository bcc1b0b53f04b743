#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "inference.pb.h"
#include "serving/http/exchange.hpp"

namespace gpunn::serving {

// "/v2/models/NAME[/versions/VERSION]ACTION".
std::string model_target(const std::string& name, const std::string& version, const std::string& action);

// An inference request as the HTTP face takes it: JSON, with the tensors behind it.
struct InferBody {
  std::string body;
  std::size_t header_bytes = 0;
  std::string problem = {};  // what is wrong with the message; empty: nothing
};
InferBody infer_body(const ::inference::ModelInferRequest& request);

// The answer to that: JSON of `header_bytes`, with the tensors behind it. They go to `tensors`, not into the message;
// those without memory of their own are parts of the answer's body. False: the body is none.
bool read_infer_answer(const Response& answer, std::size_t header_bytes, ::inference::ModelInferResponse& response,
                       std::vector<SharedBytes>& tensors);

// Reads JSON whose keys are the message's fields. False: it is none.
bool read_json(const std::string& json, google::protobuf::Message& message);
// The text of {"error": ...}.
std::string error_text(const std::string& json);

}  // namespace gpunn::serving
