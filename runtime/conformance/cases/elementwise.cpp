#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

// One element, sizes that no vector width divides, and one large enough to be shared among threads.
const std::vector<Shape> kElementwiseShapes = {{},           {1},          {7},      {64},  {1000},
                                               {2, 3, 5, 7}, {1, 1, 1, 1}, {262147}, {0, 3}};

graph::Attributes scale(float factor) {
  return graph::Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = factor});
}

graph::Attributes axpby(float alpha, float beta) {
  return graph::Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = alpha, .beta = beta});
}

graph::Attributes clamp(float low, float high) {
  return graph::Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = low, .high = high});
}

graph::Attributes fill(DType type, const Shape& shape, double value) {
  gpunn_fill_attrs attrs{};
  attrs.dtype = static_cast<int32_t>(type);
  attrs.rank = static_cast<int32_t>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) attrs.dim[i] = shape[i];
  attrs.value = value;
  return graph::Attributes::of(attrs);
}

Case copy(const InputSpec& from, DType to, const std::string& note = {}) {
  return make_case({.op = GPUNN_OP_COPY, .inputs = {from}, .note = note, .outputs = {TensorType{to, from.type.shape}}});
}

void add_copies(std::vector<Case>& cases) {
  for (const Shape& shape : kElementwiseShapes) cases.push_back(copy(f32(shape), DType::f32));
  const Shape odd{3, 67};
  // Between every two types, with values that both can hold.
  for (const DType to : {DType::f32, DType::i32, DType::i64, DType::u8}) {
    const bool byte = to == DType::u8;
    cases.push_back(copy(f32(odd, byte ? uniform(0, 255.9) : uniform(-1e6, 1e6)), to, "fractions cut"));
    cases.push_back(copy(i32(odd, byte ? integers(0, 255) : integers(-2000000000, 2000000000)), to));
    cases.push_back(copy(i64(odd, byte ? integers(0, 255) : integers(-2000000000, 2000000000)), to));
    cases.push_back(copy(u8(odd), to));
  }
  cases.push_back(copy(i32(odd, integers(-100000, 100000)), DType::u8, "modulo 256"));
}

}  // namespace

std::vector<Case> elementwise_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<Case> cases;
  for (const Shape& shape : kElementwiseShapes) {
    cases.push_back(make_case({.op = GPUNN_OP_SCALE, .attrs = scale(-0.37F), .inputs = {f32(shape)}}));
    cases.push_back(make_case({.op = GPUNN_OP_FILL, .attrs = fill(DType::f32, shape, 0.1)}));
  }
  for (const Shape& shape : kElementwiseShapes) {
    cases.push_back(
        make_case({.op = GPUNN_OP_AXPBY, .attrs = axpby(0.999F, -1.7F), .inputs = {f32(shape), f32(shape)}}));
    cases.push_back(make_case({.op = GPUNN_OP_CLAMP, .attrs = clamp(-0.25F, 0.5F), .inputs = {f32(shape)}}));
  }
  const Shape special{5, 31};
  const Generator extremes = listed({0.0, -0.0, kNan, kInf, -kInf, 1.5, -1.5, 3e38, -3e38, 1e-30, -1e-30});
  cases.push_back(make_case({.op = GPUNN_OP_SCALE, .attrs = scale(0), .inputs = {f32(special)}, .note = "by 0"}));
  cases.push_back(make_case({.op = GPUNN_OP_AXPBY,
                             .attrs = axpby(0.5F, 2),
                             .inputs = {f32(special, extremes), f32(special, constant(1))},
                             .note = "NaN and infinities"}));
  cases.push_back(make_case({.op = GPUNN_OP_AXPBY,
                             .attrs = axpby(1, -1),
                             .inputs = {f32(special, uniform(1, 2)), f32(special, uniform(1, 2))},
                             .note = "nearly cancelling"}));
  cases.push_back(make_case({.op = GPUNN_OP_CLAMP,
                             .attrs = clamp(-1, 3e38F),
                             .inputs = {f32(special, extremes)},
                             .note = "NaN and infinities"}));
  cases.push_back(
      make_case({.op = GPUNN_OP_CLAMP, .attrs = clamp(0.5F, 0.5F), .inputs = {f32(special)}, .note = "to one value"}));
  for (const DType type : {DType::i32, DType::i64, DType::u8, DType::f64}) {
    cases.push_back(make_case({.op = GPUNN_OP_FILL, .attrs = fill(type, {3, 17}, 113)}));
  }
  add_copies(cases);
  return cases;
}

}  // namespace gpunn::conformance
