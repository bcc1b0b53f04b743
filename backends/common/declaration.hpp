// What op_list.inc and op_shapes.hpp say of an op, checked.
#pragma once

#include "common/requirements.hpp"

namespace gpunn::backends {

// Throws Refusal where inputs, attributes and outputs are not what the op's row declares, or where one is not packed.
void require_declared(const OpDesc& desc);

}  // namespace gpunn::backends
