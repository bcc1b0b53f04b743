// MAX_POOL2D, AVG_POOL2D and their backwards, and QUANTIZED_MAX_POOL2D.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::pooling {

namespace {

// --- MAX_POOL2D ---

void max_pool_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_MAX_POOL2D_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0), c.output(0)}));
}

double window_flops(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_pool2d_attrs>();
  return static_cast<double>(s.outputs[0].elements()) * a.window[0] * a.window[1];
}

// Where the maximum of a window lies: the first NaN, or else the first of equal maxima in row-major order.
// `plane` is the index of element (0, 0) of the image plane.
std::size_t window_maximum(const ReferenceCall& call, const Values& x, int64_t plane, int64_t height, int64_t width,
                           int64_t p, int64_t q) {
  const auto attrs = call.attrs<gpunn_pool2d_attrs>();
  int64_t best = -1;
  for (int64_t r = 0; r < attrs.window[0]; ++r) {
    const int64_t h = p * attrs.stride[0] - attrs.pad[0] + r;
    if (h < 0 || h >= height) continue;
    for (int64_t s = 0; s < attrs.window[1]; ++s) {
      const int64_t column = q * attrs.stride[1] - attrs.pad[1] + s;
      if (column < 0 || column >= width) continue;
      const int64_t here = plane + h * width + column;
      if (best < 0 || x[at(here)] > x[at(best)] || (std::isnan(x[at(here)]) && !std::isnan(x[at(best)]))) best = here;
    }
  }
  call.require(best >= 0, "at least one element in every window");
  return at(best);
}

// Calls visit(index of the maximum in x, index in y) for every window.
template <class Visit>
void for_each_window(const ReferenceCall& call, const ReferenceTensor& x, const Shape& y, Visit visit) {
  const Shape& shape = x.type.shape;
  call.require(shape.size() == 4 && y.size() == 4 && y[0] == shape[0] && y[1] == shape[1], "x[N,C,H,W], y[N,C,P,Q]");
  int64_t output = 0;
  for (int64_t image_channel = 0; image_channel < shape[0] * shape[1]; ++image_channel) {
    const int64_t plane = image_channel * shape[2] * shape[3];
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q) {
        visit(window_maximum(call, x.values, plane, shape[2], shape[3], p, q), at(output++));
      }
    }
  }
}

void max_pool2d_reference(ReferenceCall& call) {
  const ReferenceTensor x{call.in_type(0), call.in(0)};
  for_each_window(call, x, call.out_type().shape,
                  [&](std::size_t from, std::size_t to) { call.out()[to] = x.values[from]; });
}

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

std::vector<CaseSpec> max_pool_cases() {
  std::vector<CaseSpec> cases;
  for (const Pooling& p : kPoolings) {
    const auto add = [&](const Generator& x, const std::string& note) {
      cases.push_back({.attrs = Attributes::of(attributes_of(p)), .inputs = {f32(p.x, x)}, .note = note});
    };
    add(uniform(), "");
    add(uniform(-3, -2), "all below 0, so that padding must not win");
    add(sometimes(kNan, 9, uniform()), "NaN wins");
    add(sometimes(-kInf, 2, uniform()), "minus infinity");
  }
  return cases;
}

Attributes halving() {
  return Attributes::of(gpunn_pool2d_attrs{
      .struct_size = 0, .window = {2, 2}, .stride = {2, 2}, .pad = {0, 0}, .count_padding = 0, .input_size = {0, 0}});
}

CaseSpec pool_request(Written& r) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W with window=, stride= and pad= if wanted");
  const int32_t window = take_int(r, "window", 2), stride = take_int(r, "stride", window), pad = take_int(r, "pad", 0);
  return {.attrs = Attributes::of(
              gpunn_pool2d_attrs{.struct_size = 0,
                                 .window = {window, window},
                                 .stride = {stride, stride},
                                 .pad = {pad, pad},
                                 .count_padding = 0,
                                 .input_size = {static_cast<int32_t>(r.sizes[2]), static_cast<int32_t>(r.sizes[3])}}),
          .inputs = {f32(r.sizes)}};
}

// --- MAX_POOL2D_BACKWARD ---

void max_pool2d_backward_reference(ReferenceCall& call) {
  const Values& dy = call.in(0);
  const ReferenceTensor x{call.in_type(1), call.in(1)};
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_window(call, x, call.in_type(0).shape, [&](std::size_t from, std::size_t to) { dx[from] += dy[to]; });
}

// The windows that an element is in.
double window_terms(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_pool2d_attrs>();
  return std::ceil(static_cast<double>(a.window[0]) / a.stride[0]) *
         std::ceil(static_cast<double>(a.window[1]) / a.stride[1]);
}

Shape pooled_shape(const Attributes& attrs, const Shape& x) {
  return output_shape(GPUNN_OP_MAX_POOL2D, attrs, {{DType::f32, x}});
}

// With the maxima that the gradient looks for.
CaseSpec max_pool_backward_case(const Attributes& attrs, const InputSpec& x, const std::string& note = {}) {
  const Shape y = pooled_shape(attrs, x.type.shape);
  return {
      .attrs = attrs, .inputs = {f32(y), x, f32(y)}, .note = note, .derive = [attrs](std::vector<ReferenceTensor>& in) {
        in[2] = forward(GPUNN_OP_MAX_POOL2D, attrs, {in[1]});
      }};
}

std::vector<CaseSpec> max_pool_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const Pooling& p : kPoolings) {
    const auto add = [&](const Generator& x, const std::string& note) {
      cases.push_back(max_pool_backward_case(Attributes::of(attributes_of(p)), f32(p.x, x), note));
    };
    add(uniform(), "");
    add(uniform(-3, -2), "all below 0");
    add(integers(0, 2), "ties");
    add(constant(0), "all equal");
  }
  return cases;
}

CaseSpec max_pool_backward_request(Written& r) {
  const CaseSpec of_forward = pool_request(r);
  return max_pool_backward_case(of_forward.attrs, of_forward.inputs[0]);
}

// --- QUANTIZED_MAX_POOL2D ---

std::vector<CaseSpec> quantized_max_pool_cases() {
  std::vector<CaseSpec> cases;
  std::vector<Pooling> poolings = kPoolings;
  poolings.push_back({{2, 32, 9, 11}, {3, 3}, {2, 2}, {1, 1}});  // channels that kernels take 16 at a time
  poolings.push_back({{3, 20, 8, 6}, {2, 2}, {2, 2}});           // and four at a time
  for (const Pooling& p : poolings) {
    cases.push_back({.attrs = Attributes::of(attributes_of(p)), .inputs = {u8(p.x)}});
    cases.push_back({.attrs = Attributes::of(attributes_of(p)),
                     .inputs = {u8(p.x, integers(126, 130))},
                     .note = "about the middle, where signed bytes would turn"});
  }
  return cases;
}

CaseSpec quantized_pool_request(Written& r) {
  CaseSpec spec = pool_request(r);
  spec.inputs = {u8(r.sizes)};
  return spec;
}

// --- AVG_POOL2D ---

void avg_pool_gradient(GradientContext& c) {
  auto a = c.node().attrs.as<gpunn_pool2d_attrs>();
  const Shape& x = c.input_shape(0);
  for (std::size_t i = 0; i < 2; ++i) a.input_size[i] = static_cast<int32_t>(x[2 + i]);
  c.set(0, c.add(GPUNN_OP_AVG_POOL2D_BACKWARD, Attributes::of(a), {c.output_gradient()}));
}

// Calls visit(index in y, elements, divisor) for every window, elements being the indices in x of what it holds and
// divisor what their sum is divided by.
template <class Visit>
void for_each_mean(const ReferenceCall& call, const Shape& x, const Shape& y, Visit visit) {
  const auto attrs = call.attrs<gpunn_pool2d_attrs>();
  call.require(x.size() == 4 && y.size() == 4 && y[0] == x[0] && y[1] == x[1], "x[N,C,H,W], y[N,C,P,Q]");
  int64_t output = 0;
  for (int64_t image_channel = 0; image_channel < x[0] * x[1]; ++image_channel) {
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q) {
        const int64_t top = p * attrs.stride[0] - attrs.pad[0], left = q * attrs.stride[1] - attrs.pad[1];
        std::vector<std::size_t> elements;
        for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + attrs.window[0], x[2]); ++h) {
          for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + attrs.window[1], x[3]); ++w) {
            elements.push_back(at((image_channel * x[2] + h) * x[3] + w));
          }
        }
        call.require(!elements.empty(), "at least one element in every window");
        const double whole = static_cast<double>(attrs.window[0]) * attrs.window[1];
        visit(at(output++), elements, attrs.count_padding != 0 ? whole : static_cast<double>(elements.size()));
      }
    }
  }
}

void avg_pool2d_reference(ReferenceCall& call) {
  const Values& x = call.in(0);
  for_each_mean(call, call.in_type(0).shape, call.out_type().shape,
                [&](std::size_t to, const std::vector<std::size_t>& elements, double divisor) {
                  double sum = 0;
                  for (const std::size_t from : elements) sum += x[from];
                  call.out()[to] = sum / divisor;
                });
}

double average_terms(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_pool2d_attrs>();
  const Shape& x = s.inputs.at(0).shape;
  return static_cast<double>(std::min<int64_t>(a.window[0], x[2])) *
         static_cast<double>(std::min<int64_t>(a.window[1], x[3]));
}

// Beside the others: one mean of a whole image, as networks end in.
const std::vector<Pooling> kWholes = {
    {{2, 512, 7, 7}, {7, 7}, {7, 7}}, {{3, 5, 4, 4}, {4, 4}, {4, 4}},     {{1, 2, 31, 29}, {31, 29}, {1, 1}},
    {{0, 3, 5, 5}, {5, 5}, {5, 5}},   {{1, 3, 64, 64}, {64, 64}, {1, 1}}, {{7, 300, 1, 1}, {1, 1}, {1, 1}},
};

Attributes average_attrs(const Pooling& p, bool count_padding) {
  gpunn_pool2d_attrs attrs = attributes_of(p);
  attrs.count_padding = count_padding ? 1 : 0;
  return Attributes::of(attrs);
}

std::vector<CaseSpec> avg_pool_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& poolings : {kPoolings, kWholes}) {
    for (const Pooling& p : poolings) {
      for (const bool count_padding : {false, true}) {
        const auto add = [&](const Generator& x, const std::string& note) {
          cases.push_back({.attrs = average_attrs(p, count_padding), .inputs = {f32(p.x, x)}, .note = note});
        };
        add(uniform(), "");
        add(uniform(2, 3), "all above 0, so that nothing cancels");
        add(sometimes(kNan, 9, uniform()), "NaN spreads over its windows");
      }
    }
  }
  return cases;
}

// The mean of each image, which is what ends a residual network.
Attributes whole_image() {
  return Attributes::of(gpunn_pool2d_attrs{.struct_size = 0,
                                           .window = {28, 28},
                                           .stride = {28, 28},
                                           .pad = {0, 0},
                                           .count_padding = 0,
                                           .input_size = {28, 28}});
}

// --- AVG_POOL2D_BACKWARD ---

double backward_window_flops(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_pool2d_attrs>();
  return static_cast<double>(s.inputs[0].elements()) * a.window[0] * a.window[1];
}

void avg_pool2d_backward_reference(ReferenceCall& call) {
  const Values& dy = call.in(0);
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_mean(call, call.out_type().shape, call.in_type(0).shape,
                [&](std::size_t from, const std::vector<std::size_t>& elements, double divisor) {
                  for (const std::size_t to : elements) dx[to] += dy[from] / divisor;
                });
}

Attributes average_backward_attrs(const Pooling& p, bool count_padding) {
  gpunn_pool2d_attrs attrs = attributes_of(p);
  attrs.count_padding = count_padding ? 1 : 0;
  for (std::size_t i = 0; i < 2; ++i) attrs.input_size[i] = static_cast<int32_t>(p.x[2 + i]);
  return Attributes::of(attrs);
}

std::vector<CaseSpec> avg_pool_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& poolings : {kPoolings, kWholes}) {
    for (const Pooling& p : poolings) {
      for (const bool count_padding : {false, true}) {
        const Attributes attrs = average_backward_attrs(p, count_padding);
        const auto add = [&](const Generator& dy, const std::string& note) {
          cases.push_back({.attrs = attrs, .inputs = {f32(pooled_shape(attrs, p.x), dy)}, .note = note});
        };
        add(uniform(), "");
        add(uniform(2, 3), "all above 0");
        add(sometimes(kNan, 9, uniform()), "NaN stays in its windows");
      }
    }
  }
  return cases;
}

CaseSpec avg_pool_backward_request(Written& r) {
  CaseSpec spec = pool_request(r);
  spec.inputs = {f32(pooled_shape(spec.attrs, r.sizes))};
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_MAX_POOL2D,
       .gradient = max_pool_gradient,
       .flops = window_flops,
       .reference = max_pool2d_reference,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = max_pool_cases,
       .typical = {.attrs = halving(), .inputs = {typical_images()}},
       .request = pool_request},
      {.id = GPUNN_OP_QUANTIZED_MAX_POOL2D,
       .flops = window_flops,
       .reference = max_pool2d_reference,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = quantized_max_pool_cases,
       .typical = {.attrs = halving(), .inputs = {u8({64, 64, 28, 28})}},
       .request = quantized_pool_request},
      {.id = GPUNN_OP_MAX_POOL2D_BACKWARD,
       .reference = max_pool2d_backward_reference,
       .tolerance = {{first_input_sum_scale(window_terms), "a sum over the windows that an element wins"}},
       .cases = max_pool_backward_cases,
       .typical = max_pool_backward_case(halving(), typical_images()),
       .request = max_pool_backward_request},
      {.id = GPUNN_OP_AVG_POOL2D,
       .gradient = avg_pool_gradient,
       .flops = window_flops,
       .reference = avg_pool2d_reference,
       .tolerance = {{sum_scale(average_terms), "a sum over the window in any order and a quotient"}},
       .cases = avg_pool_cases,
       .typical = {.attrs = whole_image(), .inputs = {typical_images()}},
       .request = pool_request},
      {.id = GPUNN_OP_AVG_POOL2D_BACKWARD,
       .flops = backward_window_flops,
       .reference = avg_pool2d_backward_reference,
       .tolerance = {{sum_scale(window_terms), "a sum of quotients over the windows that hold an element"}},
       .cases = avg_pool_backward_cases,
       .typical = {.attrs = whole_image(), .inputs = {f32({64, kTypicalChannels, 1, 1})}},
       .request = avg_pool_backward_request},
  };
}

}  // namespace gpunn::ops::pooling
