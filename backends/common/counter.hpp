// ADVANCE, TABLE_LOAD and TABLE_STORE.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// The increment.
inline int64_t advance_of(const OpDesc& desc) { return desc.attrs<gpunn_advance_attrs>().increment; }

struct Table {
  int64_t length = 0;  // at least 1
};

inline Table table_load_of(const OpDesc& desc) { return {.length = desc.input(0).dim[0]}; }
inline Table table_store_of(const OpDesc& desc) { return {.length = desc.input(0).dim[0]}; }

}  // namespace gpunn::backends
