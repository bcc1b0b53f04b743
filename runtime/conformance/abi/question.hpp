#pragma once

#include <cstddef>
#include <vector>

#include "conformance/abi/raw_device.hpp"
#include "graph/graph.hpp"

namespace gpunn::conformance {

// What op_query is asked about, with room to spoil it.
struct Question {
  int32_t op;
  std::vector<std::byte> attrs;
  std::vector<gpunn_tensor> inputs, outputs;

  // Points into the question.
  RawDescription description() const;
};

Question question_of(const graph::OpSignature& signature);

// What the plugin answers; a refusal by its status has a score of 0. Throws Error for a status that abi.h lacks.
gpunn_op_support query(const RawDevice& device, const gpunn_op_desc* desc);

}  // namespace gpunn::conformance
