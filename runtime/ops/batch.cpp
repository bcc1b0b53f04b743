// SAMPLE_INDICES, GATHER_ROWS, SCATTER_ADD and GATHER_NORMALIZE.
#include <gpunn/random.h>

#include <algorithm>

#include "ops/op.hpp"

namespace gpunn::ops::batch {

namespace {

// --- SAMPLE_INDICES ---

void sample_indices_reference(ReferenceCall& call) {
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

Attributes sample_attrs(int64_t rows, int32_t batch, bool shuffle, bool drop_last, uint64_t seed, uint64_t stream) {
  return Attributes::of(gpunn_sample_attrs{.struct_size = 0,
                                           .shuffle = shuffle,
                                           .rows = rows,
                                           .batch = batch,
                                           .drop_last = drop_last,
                                           .seed = seed,
                                           .stream = stream});
}

CaseSpec sample_case(int64_t rows, int32_t batch, bool shuffle, bool drop_last, int64_t at_step) {
  return {.attrs = sample_attrs(rows, batch, shuffle, drop_last, 42, 7),
          .inputs = {step(at_step)},
          .note = "step " + std::to_string(at_step)};
}

std::vector<CaseSpec> sample_cases() {
  std::vector<CaseSpec> cases;
  for (const bool shuffle : {false, true}) {
    for (const bool drop_last : {false, true}) {
      for (const int64_t at_step : {0, 1, 7, 8, 100003}) {
        cases.push_back(sample_case(1000, 128, shuffle, drop_last, at_step));  // a last batch of 104
      }
      cases.push_back(sample_case(60000, 97, shuffle, drop_last, 618));
      cases.push_back(sample_case(5, 5, shuffle, drop_last, 3));
      cases.push_back(sample_case(1, 1, shuffle, drop_last, 9));
    }
    cases.push_back(sample_case(3, 10, shuffle, false, 2));  // fewer rows than one batch
  }
  return cases;
}

CaseSpec sample_request(Written& r) {
  if (r.sizes.size() != 1) bad(r, "the number of rows, with batch= if wanted");
  const int64_t batch = take(r, "batch", 128);
  if (batch < 1 || batch > r.sizes[0]) bad(r, "a batch of 1 to as many rows as there are");
  return {.attrs = sample_attrs(r.sizes[0], static_cast<int32_t>(batch), true, true, 1, 1), .inputs = {step(0)}};
}

// --- GATHER_ROWS ---

// Each is the other's adjoint.
void gather_gradient(GradientContext& c) {
  const int64_t rows = c.input_shape(0)[0];
  c.set(0, c.add(GPUNN_OP_SCATTER_ADD, Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                 {c.output_gradient(), c.input(1)}));
}

// The data set is large, and only the rows of the batch are read.
double gathered_bytes(const OpSignature& s) {
  double bytes = static_cast<double>(s.outputs[0].elements() * static_cast<int64_t>(size_of(s.inputs[0].dtype)));
  for (std::size_t i = 1; i < s.inputs.size(); ++i) bytes += static_cast<double>(s.inputs[i].bytes());
  return bytes + static_cast<double>(s.outputs[0].bytes());
}

// The elements of a row of data[n,...].
int64_t row_size(const ReferenceCall& call) {
  int64_t size = 1;
  for (std::size_t i = 1; i < call.in_type(0).shape.size(); ++i) size *= call.in_dim(0, i);
  return size;
}

void gather_rows_reference(ReferenceCall& call) {
  const int64_t size = row_size(call);
  const bool same = call.in_type(0).dtype == call.out_type().dtype;
  for (int64_t b = 0; b < call.in_dim(1, 0); ++b) {
    const auto row = static_cast<int64_t>(call.in(1)[at(b)]);
    const bool named = row >= 0 && row < call.in_dim(0, 0);
    for (int64_t i = 0; i < size; ++i) {
      const double value = !named ? 0 : call.in(0)[at(row * size + i)];
      call.out()[at(b * size + i)] = same ? value : convert(value, call.out_type().dtype);
    }
  }
}

struct Gather {
  Shape data;
  int64_t batch;
};

const std::vector<Gather> kGathers = {
    {{1}, 1}, {{1000}, 128}, {{7, 1}, 5}, {{50, 13}, 33}, {{100, 1, 28, 28}, 17}, {{20, 3, 9, 11}, 31}, {{3, 2, 5}, 0}};

// Indices into `rows` rows, some of them -1: the tail of an epoch's last batch.
InputSpec indices(int64_t batch, int64_t rows) { return i32({batch}, sometimes(-1, 4, integers(0, rows - 1))); }

std::vector<CaseSpec> gather_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [data, batch] : kGathers) {
    for (const InputSpec& from : {f32(data), u8(data), i32(data, integers(-2000000000, 2000000000)),
                                  i64(data, integers(-2000000000, 2000000000))}) {
      cases.push_back({.inputs = {from, indices(batch, data[0])}});
    }
  }
  return cases;
}

InputSpec typical_index() { return i32({512}, integers(0, 9'999)); }

// A batch of rows, which lie anywhere.
CaseSpec gather_request(Written& r) {
  if (r.sizes.empty() || r.sizes[0] < 1) bad(r, "the data's dimensions, rows first, with batch= if wanted");
  return {.inputs = {f32(r.sizes), i32({take(r, "batch", 128)}, integers(0, r.sizes[0] - 1))}};
}

// --- SCATTER_ADD ---

void scatter_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_GATHER_ROWS, {}, {c.output_gradient(), c.input(1)}));
}

void scatter_add_reference(ReferenceCall& call) {
  const int64_t size = row_size(call), rows = call.out_dim(0, 0);
  call.out().assign(call.out().size(), 0);
  for (int64_t b = 0; b < call.in_dim(1, 0); ++b) {
    const auto row = static_cast<int64_t>(call.in(1)[at(b)]);
    if (row < 0 || row >= rows) continue;
    for (int64_t i = 0; i < size; ++i) call.out()[at(row * size + i)] += call.in(0)[at(b * size + i)];
  }
}

double first_dimension(const OpSignature& s) { return static_cast<double>(s.inputs.at(0).shape.at(0)); }

Attributes rows_attrs(int64_t rows) {
  return Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows});
}

CaseSpec scatter_case(const Shape& x, int64_t rows, const Generator& index, const std::string& note = {}) {
  return {.attrs = rows_attrs(rows), .inputs = {f32(x), i32({x[0]}, index)}, .note = note};
}

std::vector<CaseSpec> scatter_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& x : {Shape{1}, Shape{128}, Shape{33, 13}, Shape{17, 3, 5, 2}, Shape{1000, 7}, Shape{0, 4}}) {
    for (const int64_t rows : {1, 7, 500}) {
      cases.push_back(scatter_case(x, rows, sometimes(-1, 5, integers(0, rows - 1))));
    }
  }
  cases.push_back(scatter_case({64, 9}, 5, constant(3), "all of them to one row"));
  cases.push_back(
      scatter_case({64, 9}, 5, listed({4, -7, 5, 1000000, 0, -2147483648.0, 2147483647}), "indices out of range"));
  cases.push_back(scatter_case({6, 3}, 0, integers(0, 4), "no rows"));
  return cases;
}

// Rows that are added to any of as many.
CaseSpec scatter_request(Written& r) {
  if (r.sizes.empty() || r.sizes[0] < 1) bad(r, "the dimensions of x, rows first, with rows= of y if wanted");
  const int64_t rows = take(r, "rows", r.sizes[0]);
  return {.attrs = rows_attrs(rows), .inputs = {f32(r.sizes), i32({r.sizes[0]}, integers(0, rows - 1))}};
}

// --- GATHER_NORMALIZE ---

void gather_normalize_reference(ReferenceCall& call) {
  const int64_t size = row_size(call), inner = size / std::max<int64_t>(call.in_dim(0, 1), 1);
  for (int64_t b = 0; b < call.in_dim(1, 0); ++b) {
    const auto row = static_cast<int64_t>(call.in(1)[at(b)]);
    const bool named = row >= 0 && row < call.in_dim(0, 0);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t c = i / inner;
      call.out()[at(b * size + i)] =
          !named ? 0 : call.in(0)[at(row * size + i)] * call.in(2)[at(c)] + call.in(3)[at(c)];
    }
  }
}

std::vector<CaseSpec> normalize_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [data, batch] : kGathers) {
    if (data.size() < 2) continue;
    const InputSpec index = indices(batch, data[0]), shift = f32({data[1]});
    cases.push_back({.inputs = {u8(data), index, f32({data[1]}, uniform(0.001, 0.01)), shift}});
    cases.push_back({.inputs = {f32(data), index, f32({data[1]}, uniform(0.5, 2)), shift}});
  }
  return cases;
}

CaseSpec normalize_request(Written& r) {
  if (r.sizes.size() < 2) bad(r, "the data's dimensions, rows first, with batch= if wanted");
  CaseSpec spec = gather_request(r);
  spec.inputs[0] = u8(r.sizes);
  spec.inputs.insert(spec.inputs.end(), 2, f32({r.sizes[1]}));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_SAMPLE_INDICES,
       .flops = no_flops,
       .reference = sample_indices_reference,
       .tolerance = {{exact_scale, "integers"}},
       .cases = sample_cases,
       .typical = {.attrs = sample_attrs(10'000, 512, true, true, 1, 1), .inputs = {step(7)}},
       .request = sample_request},
      {.id = GPUNN_OP_GATHER_ROWS,
       .gradient = gather_gradient,
       .flops = no_flops,
       .bytes = gathered_bytes,
       .reference = gather_rows_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = gather_cases,
       .typical = {.inputs = {i32({10'000}, integers(0, 9)), typical_index()}},
       .request = gather_request},
      {.id = GPUNN_OP_SCATTER_ADD,
       .gradient = scatter_gradient,
       .flops = flops_per_input<1>,
       .reference = scatter_add_reference,
       .tolerance = {{sum_scale(first_dimension), "a sum of at most B terms in any order"}},
       .cases = scatter_cases,
       .typical = {.attrs = rows_attrs(kTypicalRows),
                   .inputs = {f32({kTypicalRows, 256}), i32({kTypicalRows}, integers(0, kTypicalRows - 1))}},
       .request = scatter_request},
      {.id = GPUNN_OP_GATHER_NORMALIZE,
       .flops = flops_per_output<2>,
       .bytes = gathered_bytes,
       .reference = gather_normalize_reference,
       .tolerance = {{affine_scale, "a product and an addition, fused or not"}},
       .cases = normalize_cases,
       .typical = {.inputs = {u8({10'000, 1, 28, 28}), typical_index(), f32({1}, constant(0.01)),
                              f32({1}, constant(-1))}},
       .request = normalize_request},
  };
}

}  // namespace gpunn::ops::batch
