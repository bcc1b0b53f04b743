#include <gpunn/ops.h>
#include <gpunn/random.h>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

void sample_indices(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_sample_attrs>();
  const int64_t batch = attrs.batch;
  call.require(batch > 0 && attrs.rows > 0, "a batch and rows");
  const int64_t steps = attrs.drop_last != 0 ? attrs.rows / batch : (attrs.rows + batch - 1) / batch;
  call.require(steps > 0, "at least one step an epoch");
  const auto step = static_cast<int64_t>(call.in(0).at(0));
  const int64_t epoch = step / steps, first = step % steps * batch;

  int64_t count = 0;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t position = first + i;
    if (position >= attrs.rows) {
      call.out(0)[at(i)] = -1;
      continue;
    }
    const auto rows = static_cast<uint32_t>(attrs.rows);
    call.out(0)[at(i)] = attrs.shuffle != 0 ? gpunn_random_permute(attrs.seed, attrs.stream, epoch, rows,
                                                                   static_cast<uint32_t>(position))
                                            : static_cast<double>(position);
    ++count;
  }
  call.out(1)[0] = static_cast<double>(count);
}

// The elements of a row of data[n,...].
int64_t row_size(const OracleCall& call) {
  int64_t size = 1;
  for (std::size_t i = 1; i < call.in_type(0).shape.size(); ++i) size *= call.in_dim(0, i);
  return size;
}

void gather_rows(OracleCall& call) {
  const int64_t size = row_size(call);
  const bool same = call.in_type(0).dtype == call.out_type().dtype;
  for (int64_t b = 0; b < call.in_dim(1, 0); ++b) {
    const auto row = static_cast<int64_t>(call.in(1)[at(b)]);
    call.require(row < call.in_dim(0, 0), "an index below the rows of data");
    for (int64_t i = 0; i < size; ++i) {
      const double value = row < 0 ? 0 : call.in(0)[at(row * size + i)];
      call.out()[at(b * size + i)] = same ? value : convert(value, call.out_type().dtype);
    }
  }
}

void scatter_add(OracleCall& call) {
  const int64_t size = row_size(call), rows = call.out_dim(0, 0);
  call.out().assign(call.out().size(), 0);
  for (int64_t b = 0; b < call.in_dim(1, 0); ++b) {
    const auto row = static_cast<int64_t>(call.in(1)[at(b)]);
    if (row < 0 || row >= rows) continue;
    for (int64_t i = 0; i < size; ++i) call.out()[at(row * size + i)] += call.in(0)[at(b * size + i)];
  }
}

void gather_normalize(OracleCall& call) {
  const int64_t size = row_size(call), channels = call.in_dim(0, 1), inner = size / channels;
  for (int64_t b = 0; b < call.in_dim(1, 0); ++b) {
    const auto row = static_cast<int64_t>(call.in(1)[at(b)]);
    call.require(row < call.in_dim(0, 0), "an index below the rows of data");
    for (int64_t i = 0; i < size; ++i) {
      const int64_t c = i / inner;
      call.out()[at(b * size + i)] =
          row < 0 ? 0 : call.in(0)[at(row * size + i)] * call.in(2)[at(c)] + call.in(3)[at(c)];
    }
  }
}

}  // namespace

std::vector<OracleEntry> batch_oracle() {
  return {{GPUNN_OP_SAMPLE_INDICES, sample_indices},
          {GPUNN_OP_GATHER_ROWS, gather_rows},
          {GPUNN_OP_SCATTER_ADD, scatter_add},
          {GPUNN_OP_GATHER_NORMALIZE, gather_normalize}};
}

}  // namespace gpunn::conformance
