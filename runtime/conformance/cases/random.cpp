#include <gpunn/ops.h>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

constexpr uint64_t kRandomSeed = 0x9E3779B97F4A7C15ULL;    // both words of the key
constexpr uint64_t kRandomStream = 0x0000000500000003ULL;  // both words of the stream
const std::vector<double> kRandomCounters = {0, 1, 12345, 5000000000.0};

graph::Attributes draw(const Shape& shape, float low, float high, uint64_t stream) {
  gpunn_random_attrs attrs{};
  attrs.rank = static_cast<int32_t>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) attrs.dim[i] = shape[i];
  attrs.seed = kRandomSeed;
  attrs.stream = stream;
  attrs.low = low;
  attrs.high = high;
  return graph::Attributes::of(attrs);
}

Case drawn(int32_t op, const Shape& shape, double counter, float low, float high, uint64_t stream = kRandomStream) {
  return make_case({.op = op,
                    .attrs = draw(shape, low, high, stream),
                    .inputs = {i64({}, constant(counter))},
                    .note = "counter " + std::to_string(static_cast<int64_t>(counter))});
}

Case dropout(const Shape& shape, double counter, float p) {
  gpunn_dropout_attrs attrs{};
  attrs.p = p;
  attrs.seed = kRandomSeed;
  attrs.stream = kRandomStream;
  return make_case({.op = GPUNN_OP_DROPOUT,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32(shape), i64({}, constant(counter))},
                    .note = "counter " + std::to_string(static_cast<int64_t>(counter))});
}

}  // namespace

std::vector<Case> random_cases() {
  std::vector<Case> cases;
  const std::vector<Shape> shapes = {{1}, {3}, {4}, {5}, {17, 31}, {2, 3, 5, 7}, {100003}};
  for (const double counter : kRandomCounters) {
    for (const Shape& shape : shapes) {
      cases.push_back(drawn(GPUNN_OP_RANDOM_UNIFORM, shape, counter, -0.25F, 0.75F));
      cases.push_back(drawn(GPUNN_OP_RANDOM_NORMAL, shape, counter, 0.5F, 2.0F));
      cases.push_back(dropout(shape, counter, 0.3F));
    }
    for (const int64_t n : {1, 2, 3, 5, 64, 1000, 60000}) {
      cases.push_back(drawn(GPUNN_OP_RANDOM_PERMUTATION, {n}, counter, 0, 0));
    }
  }
  cases.push_back(drawn(GPUNN_OP_RANDOM_UNIFORM, {1000}, 0, 0, 1, 0));
  cases.push_back(drawn(GPUNN_OP_RANDOM_NORMAL, {1000}, 0, 0, 1, 0));
  cases.push_back(dropout({1000}, 7, 0));
  cases.push_back(dropout({1000}, 7, 0.999F));
  return cases;
}

}  // namespace gpunn::conformance
