#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;

// A border of pad= around the last two dimensions, added or taken away.
OpRequest border(Written& r, const graph::OpInfo& info) {
  const std::size_t rank = r.sizes.size();
  if (rank < 2 || rank > GPUNN_MAX_RANK) bad(r, "2 to 8 dimensions with pad= if wanted");
  const int64_t pad = take(r, "pad", 1);
  gpunn_pad_attrs more{};
  gpunn_slice_attrs less{};
  more.rank = less.rank = static_cast<int32_t>(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    more.before[i] = more.after[i] = less.start[i] = i + 2 < rank ? 0 : pad;
    less.size[i] = r.sizes[i] - 2 * less.start[i];
  }
  return graph::OpSignature{.op = info.id,
                            .attrs = info.id == GPUNN_OP_PAD ? Attributes::of(more) : Attributes::of(less),
                            .inputs = {f32(r.sizes)},
                            .outputs = {}};
}

// Along the channels.
OpRequest concatenation(Written& r, const graph::OpInfo& info) {
  const int64_t parts = take(r, "parts", 2);
  if (r.sizes.size() < 2 || parts < info.min_inputs || parts > info.max_inputs) {
    bad(r, "N,C and further dimensions of each part, with parts= from 2 to 16 if wanted");
  }
  return graph::OpSignature{.op = info.id,
                            .attrs = Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 1}),
                            .inputs = std::vector<TensorType>(static_cast<std::size_t>(parts), f32(r.sizes)),
                            .outputs = {}};
}

// The last two dimensions change places.
OpRequest transposition(Written& r, const graph::OpInfo& info) {
  const std::size_t rank = r.sizes.size();
  if (rank < 2 || rank > GPUNN_MAX_RANK) bad(r, "2 to 8 dimensions, of which the last two change places");
  gpunn_transpose_attrs attrs{};
  attrs.rank = static_cast<int32_t>(rank);
  for (std::size_t i = 0; i < rank; ++i) attrs.permutation[i] = static_cast<int32_t>(i);
  std::swap(attrs.permutation[rank - 1], attrs.permutation[rank - 2]);
  return graph::OpSignature{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {f32(r.sizes)}, .outputs = {}};
}

}  // namespace

void add_shape(Builders& builders) {
  builders[GPUNN_OP_PAD] = builders[GPUNN_OP_SLICE] = border;
  builders[GPUNN_OP_CONCAT] = concatenation;
  builders[GPUNN_OP_TRANSPOSE] = transposition;
}

}  // namespace gpunn::bench
