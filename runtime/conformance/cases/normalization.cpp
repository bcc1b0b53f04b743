#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

constexpr double kBatchNan = std::numeric_limits<double>::quiet_NaN();

struct BatchCase {
  Shape x;
  int64_t count = -1;  // -1: without that input
};

// Rows of a linear layer, planes of images; one element a channel; odd sizes, sizes off 4; many rows, large planes;
// full, partial and empty batches; channels without elements.
const std::vector<BatchCase> kBatches = {
    {{1, 1}},           {{2, 1}},           {{128, 10}},     {{37, 123}},          {{1031, 7}},       {{1, 1, 1, 1}},
    {{2, 3, 5, 7}},     {{16, 6, 28, 28}},  {{3, 33, 1, 1}}, {{1, 5, 64, 65}},     {{4, 7, 11}},      {{5, 300, 2, 3}},
    {{0, 4}},           {{3, 2, 0}},        {{4, 0, 3}},     {{9, 2, 128, 128}},   {{700, 3, 4, 4}},  {{128, 10}, 128},
    {{128, 10}, 96},    {{37, 123}, 1},     {{37, 5}, 0},    {{16, 6, 28, 28}, 9}, {{3, 2, 8, 9}, 1}, {{5, 3, 2, 2}, 0},
    {{6, 2, 33, 3}, 5}, {{64, 64, 8, 8}, 7}};

graph::Attributes attributes(float epsilon, float momentum) {
  return graph::Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = epsilon, .momentum = momentum});
}

// `rest` for what counts, NaN for the rows behind.
Generator until_count(const BatchCase& batch, Generator rest) {
  if (batch.count < 0 || batch.x[0] == 0) return rest;
  const int64_t counted = batch.count * (element_count(batch.x) / batch.x[0]);
  return [=, rest = std::move(rest)](Random& random, int64_t i) { return i < counted ? rest(random, i) : kBatchNan; };
}

Case with_count(CaseSpec spec, const BatchCase& batch) {
  if (batch.count >= 0) {
    spec.inputs.push_back(i32({}, constant(static_cast<double>(batch.count))));
    spec.note = "count " + std::to_string(batch.count) + (spec.note.empty() ? "" : ", ") + spec.note;
  }
  return make_case(std::move(spec));
}

Case forward_case(const BatchCase& batch, const Generator& x, const std::string& note = {}, float epsilon = 1e-5F,
                  float momentum = 0.1F) {
  const Shape channels{batch.x[1]};
  return with_count(
      {.op = GPUNN_OP_BATCH_NORM,
       .attrs = attributes(epsilon, momentum),
       .inputs = {f32(batch.x, x), f32(channels), f32(channels), f32(channels), f32(channels, uniform(0.5, 2))},
       .note = note},
      batch);
}

// With the statistics that the forward op saves.
Case backward_case(const BatchCase& batch, const Generator& dy, const Generator& x, const std::string& note = {}) {
  const Shape channels{batch.x[1]};
  const auto save_statistics = [](std::vector<OracleTensor>& in) {
    const OracleTensor zeros{in[2].type, std::vector<double>(in[2].values.size())};
    std::vector<OracleTensor> forward_inputs{in[1], in[2], zeros, zeros, zeros};
    if (in.size() == 6) forward_inputs.push_back(in[5]);
    const graph::Attributes attrs = attributes(1e-5F, 0.1F);
    in[3] = forward(GPUNN_OP_BATCH_NORM, attrs, forward_inputs, 1);
    in[4] = forward(GPUNN_OP_BATCH_NORM, attrs, forward_inputs, 2);
  };
  return with_count({.op = GPUNN_OP_BATCH_NORM_BACKWARD,
                     .inputs = {f32(batch.x, dy), f32(batch.x, x), f32(channels), f32(channels), f32(channels)},
                     .note = note,
                     .derive = save_statistics},
                    batch);
}

Case inference_case(const Shape& x, const Generator& value, const std::string& note = {}) {
  const Shape channels{x[1]};
  return make_case(
      {.op = GPUNN_OP_BATCH_NORM_INFERENCE,
       .attrs = attributes(1e-5F, 0),
       .inputs = {f32(x, value), f32(channels), f32(channels), f32(channels), f32(channels, uniform(0, 2))},
       .note = note});
}

}  // namespace

std::vector<Case> normalization_cases() {
  std::vector<Case> cases;
  for (const BatchCase& batch : kBatches) {
    cases.push_back(forward_case(batch, uniform(-1, 3)));
    cases.push_back(backward_case(batch, until_count(batch, uniform()), uniform(-1, 3)));
    if (batch.count >= 0) {
      // What lies behind the count must not spoil the statistics.
      cases.push_back(forward_case(batch, until_count(batch, uniform()), "NaN behind the count"));
      cases.push_back(
          backward_case(batch, until_count(batch, uniform()), until_count(batch, uniform()), "x NaN behind the count"));
    } else {
      cases.push_back(inference_case(batch.x, uniform(-1, 3)));
    }
  }
  const BatchCase images{{6, 5, 17, 9}}, partial{{6, 5, 17, 9}, 4}, rows{{203, 11}};
  for (const BatchCase& batch : {images, partial, rows}) {
    cases.push_back(forward_case(batch, uniform(1000, 1001), "a mean of a thousand deviations"));
    cases.push_back(forward_case(batch, constant(3.3), "a variance of 0"));
    cases.push_back(forward_case(batch, sometimes(1e4, 97, uniform(-1e-3, 1e-3)), "outliers"));
    cases.push_back(forward_case(batch, uniform(), "", 0.5F, 1.0F));
    cases.push_back(forward_case(batch, uniform(), "", 1e-5F, 0.0F));
    cases.push_back(forward_case(batch, sometimes(kBatchNan, 400, uniform()), "NaN in some channels"));
    cases.push_back(backward_case(batch, until_count(batch, uniform()), uniform(1000, 1001), "a large mean"));
    cases.push_back(backward_case(batch, until_count(batch, uniform(99, 100)), uniform(), "a large mean of dy"));
    cases.push_back(backward_case(batch, sometimes(kBatchNan, 400, uniform()), uniform(), "NaN in dy"));
  }
  // A count that the device holds may be anything.
  for (const int64_t count : {int64_t{-3}, int64_t{99}}) {
    CaseSpec spec{.op = GPUNN_OP_BATCH_NORM,
                  .attrs = attributes(1e-5F, 0.1F),
                  .inputs = {f32({6, 3}), f32({3}), f32({3}), f32({3}), f32({3}, uniform(0.5, 2)),
                             i32({}, constant(static_cast<double>(count)))},
                  .note = "count " + std::to_string(count) + " of 6"};
    cases.push_back(make_case(std::move(spec)));
  }
  cases.push_back(inference_case({203, 11}, sometimes(kBatchNan, 400, uniform()), "NaN in x"));
  return cases;
}

}  // namespace gpunn::conformance
