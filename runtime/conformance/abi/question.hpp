#pragma once

#include <cstddef>
#include <vector>

#include "conformance/abi/raw_device.hpp"
#include "graph/graph.hpp"

namespace gpunn::conformance {

// The arguments of op_query, in a form that checks can modify.
struct Question {
  int32_t op;
  std::vector<std::byte> attrs;
  std::vector<gpunn_tensor> inputs, outputs;

  // Points into the question.
  RawDescription description() const;
};

Question question_of(const graph::OpSignature& signature);

// The plugin's answer; a refusal by its status has the score 0. Throws Error for a status that abi.h lacks.
gpunn_op_support query(const RawDevice& device, const gpunn_op_desc* desc);

}  // namespace gpunn::conformance
