#include "program/accumulation.hpp"

#include <gpunn/ops.h>

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::ValueId;

namespace {

ValueId add_rows(Graph& g, const char* name, ValueId of, int64_t part, int64_t parts) {
  TensorType type = g.value(of).type;
  type.shape.at(0) /= parts;
  const auto offset = static_cast<int64_t>(type.bytes()) * part;
  return g.add1(GPUNN_OP_COPY, name, {}, {g.add_view(name, of, type, offset)});
}

}  // namespace

Batch add_part(Graph& g, const Batch& batch, int64_t part, int64_t parts) {
  const int64_t rows = g.value(batch.x).type.shape.at(0) / parts;
  gpunn_fill_attrs count{};
  count.dtype = GPUNN_I32;
  count.value = static_cast<double>(rows);
  Batch result{.x = add_rows(g, "batch.samples", batch.x, part, parts),
               .count = g.add1(GPUNN_OP_FILL, "batch.count", Attributes::of(count), {})};
  for (const auto& [name, value] : batch.fields) {
    result.fields[name] = add_rows(g, ("batch." + name).c_str(), value, part, parts);
  }
  return result;
}

void add_to_mean(Graph& g, const std::string& name, ValueId sum, ValueId value, int64_t part, int64_t parts) {
  const float factor = part + 1 == parts ? 1.0F / static_cast<float>(parts) : 1.0F;
  g.add_into(GPUNN_OP_AXPBY, name, Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = factor, .beta = factor}),
             {sum, value}, {sum});
}

}  // namespace gpunn::training
