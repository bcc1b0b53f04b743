#pragma once

#include <optional>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "inference.pb.h"
#include "serving/http/exchange.hpp"

namespace gpunn::serving {

// The bytes of `message` with `tensors` as its raw_output_contents. Large tensors are not copied: the buffer points to
// them and keeps them alive. Nothing: the message is larger than protobuf's 2 GiB.
std::optional<grpc::ByteBuffer> infer_answer_bytes(const ::inference::ModelInferResponse& message,
                                                   const std::vector<SharedBytes>& tensors);

}  // namespace gpunn::serving
