#include <gpunn/ops.h>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

Case sample(int64_t rows, int32_t batch, bool shuffle, bool drop_last, int64_t step) {
  const gpunn_sample_attrs attrs{.struct_size = 0,
                                 .shuffle = shuffle,
                                 .rows = rows,
                                 .batch = batch,
                                 .drop_last = drop_last,
                                 .seed = 42,
                                 .stream = 7};
  return make_case({.op = GPUNN_OP_SAMPLE_INDICES,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {i64({}, constant(static_cast<double>(step)))},
                    .note = "step " + std::to_string(step)});
}

// Indices into `rows` rows, some of them -1: the tail of an epoch's last batch.
InputSpec indices(int64_t batch, int64_t rows) { return i32({batch}, sometimes(-1, 4, integers(0, rows - 1))); }

void add_gathers(std::vector<Case>& cases, const Shape& data, int64_t batch) {
  const InputSpec index = indices(batch, data[0]);
  for (const InputSpec& from : {f32(data), u8(data), i32(data, integers(-2000000000, 2000000000)),
                                i64(data, integers(-2000000000, 2000000000))}) {
    cases.push_back(make_case({.op = GPUNN_OP_GATHER_ROWS, .inputs = {from, index}}));
  }
  if (data.size() < 2) return;
  const InputSpec scale = f32({data[1]}, uniform(0.001, 0.01)), shift = f32({data[1]});
  cases.push_back(make_case({.op = GPUNN_OP_GATHER_NORMALIZE, .inputs = {u8(data), index, scale, shift}}));
  cases.push_back(make_case(
      {.op = GPUNN_OP_GATHER_NORMALIZE, .inputs = {f32(data), index, f32({data[1]}, uniform(0.5, 2)), shift}}));
}

Case scatter(const Shape& x, int64_t rows, const Generator& index, const std::string& note = {}) {
  return make_case({.op = GPUNN_OP_SCATTER_ADD,
                    .attrs = graph::Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                    .inputs = {f32(x), i32({x[0]}, index)},
                    .note = note});
}

void add_scatters(std::vector<Case>& cases) {
  for (const Shape& x : {Shape{1}, Shape{128}, Shape{33, 13}, Shape{17, 3, 5, 2}, Shape{1000, 7}, Shape{0, 4}}) {
    for (const int64_t rows : {1, 7, 500}) {
      cases.push_back(scatter(x, rows, sometimes(-1, 5, integers(0, rows - 1))));
    }
  }
  cases.push_back(scatter({64, 9}, 5, constant(3), "all of them to one row"));
  cases.push_back(
      scatter({64, 9}, 5, listed({4, -7, 5, 1000000, 0, -2147483648.0, 2147483647}), "indices out of range"));
  cases.push_back(scatter({6, 3}, 0, integers(0, 4), "no rows"));
}

}  // namespace

std::vector<Case> batch_cases() {
  std::vector<Case> cases;
  for (const bool shuffle : {false, true}) {
    for (const bool drop_last : {false, true}) {
      for (const int64_t step : {0, 1, 7, 8, 100003}) {
        cases.push_back(sample(1000, 128, shuffle, drop_last, step));  // a last batch of 104
      }
      cases.push_back(sample(60000, 97, shuffle, drop_last, 618));
      cases.push_back(sample(5, 5, shuffle, drop_last, 3));
      cases.push_back(sample(1, 1, shuffle, drop_last, 9));
    }
    cases.push_back(sample(3, 10, shuffle, false, 2));  // fewer rows than one batch
  }
  add_gathers(cases, {1}, 1);
  add_gathers(cases, {1000}, 128);
  add_gathers(cases, {7, 1}, 5);
  add_gathers(cases, {50, 13}, 33);
  add_gathers(cases, {100, 1, 28, 28}, 17);
  add_gathers(cases, {20, 3, 9, 11}, 31);
  add_gathers(cases, {3, 2, 5}, 0);
  add_scatters(cases);
  return cases;
}

}  // namespace gpunn::conformance
