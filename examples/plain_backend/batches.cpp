// Picking a batch out of the data set, counters and tables.
#include <gpunn/random.h>

#include <algorithm>

#include "plain.hpp"

namespace plain {
namespace {

void sample_indices(const gpunn_sample_attrs& attrs, const OpArgs& args) {
  const int64_t batch = attrs.batch;
  const int64_t steps = attrs.drop_last != 0 ? attrs.rows / batch : (attrs.rows + batch - 1) / batch;
  const int64_t step = *args.in<int64_t>(0), epoch = step / steps, first = step % steps * batch;
  for (int64_t i = 0; i < batch; ++i) {
    const auto place = static_cast<uint32_t>(first + i);
    const bool there = first + i < attrs.rows;
    const uint32_t row = there && attrs.shuffle != 0 ? gpunn_random_permute(attrs.seed, attrs.stream, epoch,
                                                                            static_cast<uint32_t>(attrs.rows), place)
                                                     : place;
    args.out<int32_t>(0)[i] = there ? static_cast<int32_t>(row) : -1;
  }
  *args.out<int32_t>(1) = static_cast<int32_t>(std::min(batch, attrs.rows - first));
}

int64_t row_size(const gpunn_tensor& tensor) {
  int64_t size = 1;
  for (int32_t i = 1; i < tensor.rank; ++i) size *= tensor.dim[i];
  return size;
}

// Calls body(element of y, element of the data) for each; the latter is -1 where an index names no row.
template <class Body>
void for_gathered(const OpArgs& args, const Body& body) {
  const int64_t size = row_size(args.output(0));
  for (int64_t i = 0; i < elements(args.output(0)); ++i) {
    const int64_t row = args.in<int32_t>(1)[i / size];
    body(i, row < 0 || row >= args.input(0).dim[0] ? -1 : row * size + i % size);
  }
}

template <class From, class To>
void gather(const OpArgs& args) {
  for_gathered(args, [&](int64_t to, int64_t from) {
    args.out<To>(0)[to] = from < 0 ? To{0} : static_cast<To>(args.in<From>(0)[from]);
  });
}

void gather_rows(const gpunn_no_attrs&, const OpArgs& args) {
  switch (args.input(0).dtype) {
    case GPUNN_U8:
      return gather<uint8_t, int32_t>(args);
    case GPUNN_I64:
      return gather<int64_t, int32_t>(args);
    case GPUNN_I32:
      return gather<int32_t, int32_t>(args);
    default:
      return gather<float, float>(args);
  }
}

void gather_normalize(const gpunn_no_attrs&, const OpArgs& args) {
  const gpunn_tensor& y = args.output(0);
  const bool bytes = args.input(0).dtype == GPUNN_U8;
  const int64_t channels = y.dim[1], inner = row_size(y) / std::max<int64_t>(1, channels);
  for_gathered(args, [&](int64_t to, int64_t from) {
    const int64_t c = to / inner % channels;
    const float value = from < 0 ? 0.0F : bytes ? args.in<uint8_t>(0)[from] : args.in<float>(0)[from];
    args.out<float>(0)[to] = from < 0 ? 0.0F : value * args.in<float>(2)[c] + args.in<float>(3)[c];
  });
}

void advance(const gpunn_advance_attrs& attrs, const OpArgs& args) { *args.out<int64_t>(0) += attrs.increment; }

void table_load(const gpunn_no_attrs&, const OpArgs& args) {
  const int64_t last = args.input(0).dim[0] - 1;
  *args.out<float>(0) = args.in<float>(0)[std::clamp<int64_t>(*args.in<int64_t>(1), 0, last)];
}

void table_store(const gpunn_no_attrs&, const OpArgs& args) {
  const int64_t size = args.input(0).dim[0], place = *args.in<int64_t>(1) % size;
  args.out<float>(0)[place < 0 ? place + size : place] = *args.in<float>(2);
}

}  // namespace

void add_batches(Device& device) {
  serve(device, GPUNN_OP_SAMPLE_INDICES, sample_indices);
  serve(device, GPUNN_OP_GATHER_ROWS, gather_rows);
  serve(device, GPUNN_OP_GATHER_NORMALIZE, gather_normalize);
  serve(device, GPUNN_OP_ADVANCE, advance);
  serve(device, GPUNN_OP_TABLE_LOAD, table_load);
  serve(device, GPUNN_OP_TABLE_STORE, table_store);
}

}  // namespace plain
