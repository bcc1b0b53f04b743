#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"
#include "graph/op_info.hpp"

namespace gpunn::conformance {

namespace {

struct Pooling {
  Shape x;
  int32_t window[2];
  int32_t stride[2];
  int32_t pad[2] = {0, 0};
};

const std::vector<Pooling> kPoolings = {
    {{1, 1, 1, 1}, {1, 1}, {1, 1}},
    {{2, 3, 8, 8}, {2, 2}, {2, 2}},
    {{5, 6, 28, 28}, {2, 2}, {2, 2}},
    {{2, 3, 9, 7}, {2, 2}, {2, 2}},  // a last row and column unread
    {{2, 4, 9, 11}, {3, 3}, {2, 2}, {1, 1}},
    {{1, 5, 7, 6}, {3, 3}, {1, 1}, {1, 1}},  // each element in up to nine
                                             // windows
    {{3, 2, 10, 13}, {2, 3}, {3, 2}, {1, 0}},
    {{2, 3, 6, 5}, {6, 5}, {1, 1}},  // one window
    {{1, 2, 11, 12}, {5, 4}, {2, 3}, {2, 2}},
    {{2, 2, 9, 9}, {1, 1}, {2, 2}},
    {{1, 3, 4, 70}, {2, 1}, {1, 1}},
    {{1, 1, 2, 2}, {2, 2}, {2, 2}, {1, 1}},  // every window at a corner
    {{65, 17, 5, 5}, {2, 2}, {2, 2}},
};

gpunn_pool2d_attrs attributes_of(const Pooling& p) {
  gpunn_pool2d_attrs attrs{};
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.window[i] = p.window[i];
    attrs.stride[i] = p.stride[i];
    attrs.pad[i] = p.pad[i];
  }
  return attrs;
}

graph::Attributes attributes(const Pooling& p) { return graph::Attributes::of(attributes_of(p)); }

Case backward(const Pooling& p, const Generator& x, const std::string& note) {
  const graph::Attributes attrs = attributes(p);
  const std::vector<TensorType> types{TensorType{DType::f32, p.x}};
  const Shape y = graph::op_info(GPUNN_OP_MAX_POOL2D).infer(attrs, types).front().shape;
  return make_case(
      {.op = GPUNN_OP_MAX_POOL2D_BACKWARD,
       .attrs = attrs,
       .inputs = {f32(y), f32(p.x, x), f32(y)},
       .note = note,
       .derive = [attrs](std::vector<OracleTensor>& in) { in[2] = forward(GPUNN_OP_MAX_POOL2D, attrs, {in[1]}); }});
}

Case average(const Pooling& p, bool count_padding, const Generator& x, const std::string& note) {
  gpunn_pool2d_attrs attrs = attributes_of(p);
  attrs.count_padding = count_padding ? 1 : 0;
  return make_case(
      {.op = GPUNN_OP_AVG_POOL2D, .attrs = graph::Attributes::of(attrs), .inputs = {f32(p.x, x)}, .note = note});
}

Case average_backward(const Pooling& p, bool count_padding, const Generator& dy, const std::string& note) {
  gpunn_pool2d_attrs attrs = attributes_of(p);
  attrs.count_padding = count_padding ? 1 : 0;
  for (std::size_t i = 0; i < 2; ++i) attrs.input_size[i] = static_cast<int32_t>(p.x[2 + i]);
  const std::vector<TensorType> types{TensorType{DType::f32, p.x}};
  const Shape y = graph::op_info(GPUNN_OP_AVG_POOL2D).infer(graph::Attributes::of(attrs), types).front().shape;
  return make_case({.op = GPUNN_OP_AVG_POOL2D_BACKWARD,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32(y, dy)},
                    .note = note});
}

// Beside the others: one mean of a whole image, as networks end in.
const std::vector<Pooling> kWholes = {
    {{2, 512, 7, 7}, {7, 7}, {7, 7}}, {{3, 5, 4, 4}, {4, 4}, {4, 4}},     {{1, 2, 31, 29}, {31, 29}, {1, 1}},
    {{0, 3, 5, 5}, {5, 5}, {5, 5}},   {{1, 3, 64, 64}, {64, 64}, {1, 1}}, {{7, 300, 1, 1}, {1, 1}, {1, 1}},
};

void add_averages(std::vector<Case>& cases, const std::vector<Pooling>& poolings) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Pooling& p : poolings) {
    for (const bool count_padding : {false, true}) {
      cases.push_back(average(p, count_padding, uniform(), ""));
      cases.push_back(average(p, count_padding, uniform(2, 3), "all above 0, so that nothing cancels"));
      cases.push_back(average(p, count_padding, sometimes(kNan, 9, uniform()), "NaN spreads over its windows"));
      cases.push_back(average_backward(p, count_padding, uniform(), ""));
      cases.push_back(average_backward(p, count_padding, uniform(2, 3), "all above 0"));
      cases.push_back(average_backward(p, count_padding, sometimes(kNan, 9, uniform()), "NaN stays in its windows"));
    }
  }
}

}  // namespace

std::vector<Case> pooling_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<Case> cases;
  const auto add_forward = [&cases](const Pooling& p, const Generator& x, const std::string& note) {
    cases.push_back(
        make_case({.op = GPUNN_OP_MAX_POOL2D, .attrs = attributes(p), .inputs = {f32(p.x, x)}, .note = note}));
  };
  for (const Pooling& p : kPoolings) {
    add_forward(p, uniform(), "");
    add_forward(p, uniform(-3, -2), "all below 0, so that padding must not win");
    add_forward(p, sometimes(kNan, 9, uniform()), "NaN wins");
    add_forward(p, sometimes(-kInf, 2, uniform()), "minus infinity");
    cases.push_back(backward(p, uniform(), ""));
    cases.push_back(backward(p, uniform(-3, -2), "all below 0"));
    cases.push_back(backward(p, integers(0, 2), "ties"));
    cases.push_back(backward(p, constant(0), "all equal"));
  }
  add_averages(cases, kPoolings);
  add_averages(cases, kWholes);
  return cases;
}

}  // namespace gpunn::conformance
