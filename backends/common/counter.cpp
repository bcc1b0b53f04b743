#include "common/counter.hpp"

namespace gpunn::backends {
namespace {

Table table_of(const OpDesc& desc, const gpunn_tensor& value) {
  const gpunn_tensor& table = desc.input(0);
  require_packed(table, table.dtype, "table");
  require(table.rank == 1 && table.dim[0] >= 1, "table must be [T] with T at least 1");
  require_scalar(desc.input(1), GPUNN_I64, "step");
  require_scalar(value, table.dtype, "the value");
  return {.length = table.dim[0], .element = dtype_size(table.dtype)};
}

}  // namespace

int64_t advance_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  require_scalar(desc.input(0), GPUNN_I64, "counter");
  require_scalar(desc.output(0), GPUNN_I64, "counter");
  return require_attrs<gpunn_advance_attrs>(desc).increment;
}

Table table_load_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  return table_of(desc, desc.output(0));
}

Table table_store_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.output(0), desc.input(0).dtype, "table");
  require_same_shape(desc.input(0), desc.output(0), "table");
  return table_of(desc, desc.input(2));
}

}  // namespace gpunn::backends
