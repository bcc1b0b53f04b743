// LOCAL_RESPONSE_NORM and its backward.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::local_response_norm {

namespace {

// --- LOCAL_RESPONSE_NORM ---

void response_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0)}));
}

using Response = gpunn_local_response_norm_attrs;

// The mean over a window of channels, whose numbers outside [0, C) are 0: from c - before to c - before + size - 1.
ValueId window_mean(Composition& c, ValueId x, int32_t size, int32_t before) {
  const Shape shape = c.shape(x);
  const int32_t pad = size / 2;
  const gpunn_pool2d_attrs attrs{.struct_size = 0,
                                 .window = {size, 1},
                                 .stride = {1, 1},
                                 .pad = {pad, 0},
                                 .count_padding = 1,
                                 .input_size = {0, 0}};
  const Shape planes{shape[0], 1, shape[1], element_count(shape) / (shape[0] * shape[1])};
  const ValueId pooled = c.op(GPUNN_OP_AVG_POOL2D, {c.view(x, planes)}, Attributes::of(attrs));
  // A window of even size begins at one place more than there are channels.
  const ValueId kept = c.shape(pooled)[2] == shape[1] ? pooled : c.slice(pooled, 2, pad - before, shape[1]);
  return c.view(kept, shape);
}

// k + alpha / size * the sum of squares in the window.
ValueId response_base(Composition& c, ValueId x, const Response& a) {
  return c.add(c.scaled(window_mean(c, c.mul(x, x), a.size, a.size / 2), a.alpha), c.constant(a.k));
}

std::vector<ValueId> response_parts(Composition& c) {
  const auto a = c.attrs<Response>();
  const ValueId x = c.in(0);
  if (element_count(c.shape(x)) == 0) return {};
  return {c.mul(x, c.pow(response_base(c, x, a), c.constant(-a.beta)))};
}

double window_of(const OpSignature& s) { return s.attrs.as<gpunn_local_response_norm_attrs>().size; }

// A power is counted as ten operations.
double response_flops(const OpSignature& s) {
  return (2 * window_of(s) + 13) * static_cast<double>(s.inputs[0].elements());
}

// A tensor [N,C,...] as [images][channels][inner].
struct Planes {
  int64_t images, channels, inner;

  std::size_t element(int64_t n, int64_t c, int64_t i) const { return at((n * channels + c) * inner + i); }
};

Planes planes_of(const ReferenceCall& call) {
  Planes planes{call.in_dim(0, 0), call.in_dim(0, 1), 1};
  for (std::size_t i = 2; i < call.in_type(0).shape.size(); ++i) planes.inner *= call.in_dim(0, i);
  return planes;
}

// s[c] = k + alpha / size * sum of x^2 over the channels from c - size / 2 to c + (size - 1) / 2.
Values denominators(const ReferenceCall& call, const Values& x) {
  const auto attrs = call.attrs<gpunn_local_response_norm_attrs>();
  const Planes planes = planes_of(call);
  Values s(x.size());
  for (int64_t n = 0; n < planes.images; ++n) {
    for (int64_t c = 0; c < planes.channels; ++c) {
      const int64_t first = std::max<int64_t>(c - attrs.size / 2, 0);
      const int64_t last = std::min<int64_t>(c + (attrs.size - 1) / 2, planes.channels - 1);
      for (int64_t i = 0; i < planes.inner; ++i) {
        double sum = 0;
        for (int64_t j = first; j <= last; ++j) sum += x[planes.element(n, j, i)] * x[planes.element(n, j, i)];
        s[planes.element(n, c, i)] = attrs.k + static_cast<double>(attrs.alpha) / attrs.size * sum;
      }
    }
  }
  return s;
}

void local_response_norm_reference(ReferenceCall& call) {
  const double beta = call.attrs<gpunn_local_response_norm_attrs>().beta;
  const Values& x = call.in(0);
  const Values s = denominators(call, x);
  for (std::size_t i = 0; i < x.size(); ++i) call.out()[i] = x[i] * std::pow(s[i], -beta);
}

constexpr double kPowerError = 8;  // roundings of a power and what surrounds it

// LOCAL_RESPONSE_NORM with its tensors as [images][channels][inner].
struct ResponseScales {
  std::size_t channels = 0, inner = 1;
  gpunn_local_response_norm_attrs attrs{};
  const std::vector<double>& x;

  ResponseScales(const Evaluation& e, std::size_t input)
      : attrs(e.signature.attrs.as<gpunn_local_response_norm_attrs>()), x(e.inputs.at(input).values) {
    const Shape& shape = e.inputs[input].type.shape;
    channels = static_cast<std::size_t>(shape.at(1));
    for (std::size_t i = 2; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  }

  // The sum of value(element) over `before` channels before the element's, its own, and `behind` channels behind it.
  template <class Value>
  double over_neighbours(std::size_t element, std::size_t before, std::size_t behind, const Value& value) const {
    const std::size_t channel = element / inner % channels, first = channel - std::min(channel, before);
    const std::size_t last = std::min(channel + behind, channels - 1);
    double sum = 0;
    for (std::size_t c = first; c <= last; ++c) sum += value(element - channel * inner + c * inner);
    return sum;
  }

  std::size_t left() const { return static_cast<std::size_t>(attrs.size / 2); }
  std::size_t right() const { return static_cast<std::size_t>((attrs.size - 1) / 2); }

  double denominator(std::size_t element) const {
    const double squares = over_neighbours(element, left(), right(), [&](std::size_t i) { return x[i] * x[i]; });
    return attrs.k + static_cast<double>(attrs.alpha) / attrs.size * squares;
  }

  // Relative, of s^exponent: s is a sum of positive terms, and its logarithm is rounded where the power is made by one.
  double power_error(double s, double exponent) const {
    return kPowerError + std::abs(exponent) * (accumulation(attrs.size) + 2 * std::abs(std::log(s)));
  }
};

std::vector<double> local_response_norm_scale(const Evaluation& e, std::size_t output) {
  const ResponseScales response(e, 0);
  const std::vector<double>& y = e.reference.at(output).values;
  std::vector<double> scale(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    scale[i] = std::abs(y[i]) * response.power_error(response.denominator(i), response.attrs.beta);
  }
  return scale;
}

struct ResponseCase {
  Shape x;
  int32_t size;
};

// Fewer channels than neighbours, as many, more; even sizes, which reach further back; one neighbour; nothing.
const std::vector<ResponseCase> kResponses = {
    {{1, 1}, 1},          {{1, 1, 1, 1}, 5},  {{2, 3, 5, 7}, 5},    {{2, 3, 5, 7}, 2},
    {{16, 6, 13, 13}, 5}, {{128, 10}, 3},     {{37, 123}, 4},       {{4, 5, 11}, 5},
    {{3, 4, 9}, 9},       {{2, 33, 1, 3}, 7}, {{1, 17, 40, 41}, 5}, {{5, 96, 4, 4}, 5},
    {{3, 7, 2, 2}, 1},    {{0, 4, 3}, 5},     {{2, 3, 0}, 3},       {{2, 11, 6}, 100'000}};

Attributes attributes(int32_t size, float alpha, float beta, float k) {
  return Attributes::of(
      gpunn_local_response_norm_attrs{.struct_size = 0, .size = size, .alpha = alpha, .beta = beta, .k = k});
}

std::vector<CaseSpec> response_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](const Shape& shape, const Attributes& attrs, const Generator& x,
                            const std::string& note = {}) {
    cases.push_back({.attrs = attrs, .inputs = {f32(shape, x)}, .note = note});
  };
  for (const ResponseCase& r : kResponses) add(r.x, attributes(r.size, 1, 0.75F, 1), uniform(-3, 3));
  const Shape images{3, 13, 5, 6};
  add(images, attributes(5, 1e-4F, 0.75F, 2), uniform(-100, 100), "Krizhevsky's");
  add(images, attributes(5, 2, 1.5F, 0.25F), uniform());
  add(images, attributes(5, 0, 0.75F, 2), uniform());
  add(images, attributes(5, 1, 0, 1), uniform());
  add(images, attributes(5, 1, -1, 1), uniform());
  add(images, attributes(5, 1, 0.75F, 1e-3F), sometimes(0, 2, uniform(-1e3, 1e3)), "zeros and large values");
  add(images, attributes(5, 1, 0.75F, 1), sometimes(kNan, 300, uniform()), "NaN in the neighbourhood");
  return cases;
}

CaseSpec response_request(Written& r) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions, with window= if wanted");
  return {.attrs = attributes(take_int(r, "window", 5), 1e-4F, 0.75F, 1), .inputs = {f32(r.sizes)}};
}

// With an alpha at which the neighbours count.
CaseSpec differentiable_case(const Shape& x, int32_t size) {
  return {.attrs = attributes(size, 0.9F, 0.75F, 1.5F), .inputs = {f32(x, uniform(-2, 2))}};
}

std::vector<CaseSpec> differentiable_responses() {
  return {differentiable_case({2, 7, 2, 2}, 5), differentiable_case({2, 6, 3}, 4), differentiable_case({3, 5}, 1),
          differentiable_case({1, 3, 2, 1}, 9)};
}

// --- LOCAL_RESPONSE_NORM_BACKWARD ---

// dx = dy base^-beta - 2 alpha beta / size x times the sum of dy x base^(-beta-1) over the channels whose window x is
// in.
std::vector<ValueId> response_backward_parts(Composition& c) {
  const auto a = c.attrs<Response>();
  const ValueId dy = c.in(0), x = c.in(1);
  if (element_count(c.shape(x)) == 0) return {};
  const ValueId base = response_base(c, x, a);
  const ValueId power = c.pow(base, c.constant(-a.beta));
  const ValueId terms = c.div(c.mul(c.mul(dy, x), power), base);
  const ValueId others = c.scaled(window_mean(c, terms, a.size, (a.size - 1) / 2), 2.0 * a.alpha * a.beta);
  return {c.sub(c.mul(dy, power), c.mul(x, others))};
}

double response_backward_flops(const OpSignature& s) {
  return (3 * window_of(s) + 19) * static_cast<double>(s.inputs[0].elements());
}

// Every y[c] in whose sum x[j] is, and that are the c from j - (size - 1) / 2 to j + size / 2, sends something to
// dx[j].
void local_response_norm_backward_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_local_response_norm_attrs>();
  const double beta = attrs.beta, alpha = attrs.alpha;
  const Planes planes = planes_of(call);
  const Values &dy = call.in(0), &x = call.in(1);
  const Values s = denominators(call, x);
  for (int64_t n = 0; n < planes.images; ++n) {
    for (int64_t j = 0; j < planes.channels; ++j) {
      const int64_t first = std::max<int64_t>(j - (attrs.size - 1) / 2, 0);
      const int64_t last = std::min<int64_t>(j + attrs.size / 2, planes.channels - 1);
      for (int64_t i = 0; i < planes.inner; ++i) {
        double sum = 0;
        for (int64_t c = first; c <= last; ++c) {
          const std::size_t from = planes.element(n, c, i);
          sum += dy[from] * x[from] * std::pow(s[from], -beta - 1);
        }
        const std::size_t to = planes.element(n, j, i);
        call.out()[to] = dy[to] * std::pow(s[to], -beta) - 2 * beta * alpha / attrs.size * x[to] * sum;
      }
    }
  }
}

// dx = dy s^-beta - 2 beta alpha / size x (sum of dy x s^(-beta - 1)).
std::vector<double> local_response_norm_backward_scale(const Evaluation& e, std::size_t output) {
  const ResponseScales response(e, 1);
  const std::vector<double>&dy = e.inputs.at(0).values, &x = e.inputs.at(1).values;
  const double beta = response.attrs.beta, alpha = response.attrs.alpha, size = response.attrs.size;
  std::vector<double> denominator(x.size()), scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < x.size(); ++i) denominator[i] = response.denominator(i);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto term = [&](std::size_t c) {
      const double s = denominator[c];
      return std::abs(dy[c] * x[c]) * std::pow(s, -beta - 1) * response.power_error(s, beta + 1);
    };
    const double sum = response.over_neighbours(i, response.right(), response.left(), term);
    scale[i] = std::abs(dy[i]) * std::pow(denominator[i], -beta) * response.power_error(denominator[i], beta) +
               std::abs(2 * beta * alpha / size * x[i]) * sum * accumulation(size);
  }
  return scale;
}

std::vector<CaseSpec> response_backward_cases() {
  std::vector<CaseSpec> cases = response_cases();
  for (CaseSpec& spec : cases) spec.inputs.insert(spec.inputs.begin(), f32(spec.inputs[0].type.shape));
  return cases;
}

CaseSpec response_backward_request(Written& r) {
  CaseSpec spec = response_request(r);
  spec.inputs.push_back(f32(r.sizes));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM,
       .gradient = response_gradient,
       .decompose = response_parts,
       .flops = response_flops,
       .reference = local_response_norm_reference,
       .tolerance = {{local_response_norm_scale, "a sum of squares, a power and a product"}},
       .cases = response_cases,
       .differentiable = differentiable_responses,
       .typical = {.attrs = attributes(5, 1e-4F, 0.75F, 1), .inputs = {typical_images()}},
       .largest = kLargestSquared,
       .request = response_request},
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD,
       .decompose = response_backward_parts,
       .flops = response_backward_flops,
       .reference = local_response_norm_backward_reference,
       .tolerance = {{local_response_norm_backward_scale, "sums of squares, two powers, a sum"}},
       .cases = response_backward_cases,
       .typical = {.attrs = attributes(5, 1e-4F, 0.75F, 1), .inputs = repeated(2, typical_images())},
       .largest = 1e8,  // a denominator, its square, has the power -beta - 1
       .request = response_backward_request},
  };
}

}  // namespace gpunn::ops::local_response_norm
