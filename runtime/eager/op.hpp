#pragma once

#include <gpunn/ops.hpp>

#include "graph/attributes.hpp"
#include "ops/op.hpp"

namespace gpunn::eager {

struct Op::Impl {
  const ops::OpInfo* info = nullptr;
  const OpDescription* description = nullptr;
  graph::Attributes attrs;
};

// An op of the catalogue with the attributes as its struct has them.
struct OpAccess {
  static Op make(int32_t id, graph::Attributes attrs);
};

}  // namespace gpunn::eager
