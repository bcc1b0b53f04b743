// ADVANCE, TABLE_LOAD and TABLE_STORE.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// The increment.
int64_t advance_of(const OpDesc& desc);

// A table of any type: its bytes are moved.
struct Table {
  int64_t length = 0;       // at least 1
  std::size_t element = 0;  // bytes
};

Table table_load_of(const OpDesc& desc);
Table table_store_of(const OpDesc& desc);

}  // namespace gpunn::backends
