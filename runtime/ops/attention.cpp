// ATTENTION and its backward.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op.hpp"
#include "ops/tolerance.hpp"

namespace gpunn::ops::attention {

namespace {

// q[samples, queries, heads, width], k and v[samples, keys, heads, width]. A row is a query, or a key, of one head.
struct Sizes {
  int64_t samples = 0, queries = 0, keys = 0, heads = 0, width = 0;
  double scale = 1;

  std::size_t query(int64_t n, int64_t h, int64_t t) const { return at(((n * queries + t) * heads + h) * width); }
  std::size_t key(int64_t n, int64_t h, int64_t s) const { return at(((n * keys + s) * heads + h) * width); }
  std::size_t lse(int64_t n, int64_t h, int64_t t) const { return at((n * heads + h) * queries + t); }

  template <class Visit>
  void for_each_query(const Visit& visit) const {
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < queries; ++t) visit(n, h, t);
      }
    }
  }
};

Sizes sizes_of(const OpSignature& s, std::size_t q) {
  const Shape &queries = s.inputs.at(q).shape, &keys = s.inputs.at(q + 1).shape;
  return {.samples = queries[0],
          .queries = queries[1],
          .keys = keys[1],
          .heads = queries[2],
          .width = queries[3],
          .scale = s.attrs.as<gpunn_attention_attrs>().scale};
}
Sizes forward_sizes(const OpSignature& s) { return sizes_of(s, 0); }
Sizes backward_sizes(const OpSignature& s) { return sizes_of(s, 1); }

Sizes sizes_of(const ReferenceCall& call, std::size_t q) {
  return {.samples = call.in_dim(q, 0),
          .queries = call.in_dim(q, 1),
          .keys = call.in_dim(q + 1, 1),
          .heads = call.in_dim(q, 2),
          .width = call.in_dim(q, 3),
          .scale = call.attrs<gpunn_attention_attrs>().scale};
}

double dot(const Values& a, std::size_t i, const Values& b, std::size_t j, int64_t width) {
  double sum = 0;
  for (std::size_t d = 0; d < at(width); ++d) sum += a[i + d] * b[j + d];
  return sum;
}

double dot_of_magnitudes(const Values& a, std::size_t i, const Values& b, std::size_t j, int64_t width) {
  double sum = 0;
  for (std::size_t d = 0; d < at(width); ++d) sum += std::abs(a[i + d] * b[j + d]);
  return sum;
}

double products(const Sizes& s) {
  return static_cast<double>(s.samples * s.heads * s.queries * s.keys) * static_cast<double>(s.width);
}

Attributes attributes(float scale) { return Attributes::of(gpunn_attention_attrs{.struct_size = 0, .scale = scale}); }

// --- Parts of the decompositions ---

// x[N,T,H,D] as [N*H,T,D], and back.
ValueId by_head(Composition& c, ValueId x) {
  const gpunn_transpose_attrs attrs{.struct_size = 0, .rank = 4, .permutation = {0, 2, 1, 3}};
  const Shape s = c.shape(x);
  return c.view(c.op(GPUNN_OP_TRANSPOSE, {x}, Attributes::of(attrs)), {s[0] * s[2], s[1], s[3]});
}

ValueId by_token(Composition& c, ValueId x, const Shape& like) {
  const gpunn_transpose_attrs attrs{.struct_size = 0, .rank = 4, .permutation = {0, 2, 1, 3}};
  return c.op(GPUNN_OP_TRANSPOSE, {c.view(x, {like[0], like[2], like[1], like[3]})}, Attributes::of(attrs));
}

ValueId product(Composition& c, ValueId a, ValueId b, bool transpose_a, bool transpose_b) {
  const gpunn_matmul_attrs attrs{.struct_size = 0, .transpose_a = transpose_a, .transpose_b = transpose_b};
  return c.op(GPUNN_OP_BATCH_MATMUL, {a, b}, Attributes::of(attrs));
}

// --- ATTENTION ---

void attention_gradient(GradientContext& c) {
  const std::vector<ValueId> gradients =
      c.graph().add(GPUNN_OP_ATTENTION_BACKWARD, c.name(), c.node().attrs,
                    {c.output_gradient(), c.input(0), c.input(1), c.input(2), c.output(0), c.output(1)});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (c.wants(i)) c.set(i, gradients[i]);
  }
}

// The largest weight of a row is exp(largest score - lse), so that lse takes two maxima and no second sum.
std::vector<ValueId> attention_parts(Composition& c) {
  const Shape q = c.shape(c.in(0)), k = c.shape(c.in(1));
  const int64_t rows = q[0] * q[2] * q[1], keys = k[1];
  const ValueId queries = c.scaled(by_head(c, c.in(0)), c.attrs<gpunn_attention_attrs>().scale);
  const ValueId scores = c.view(product(c, queries, by_head(c, c.in(1)), false, true), {rows, keys});
  const ValueId weights = c.op(GPUNN_OP_SOFTMAX, {scores});
  const ValueId y = product(c, c.view(weights, {q[0] * q[2], q[1], keys}), by_head(c, c.in(2)), false, false);
  const auto largest = [&](ValueId x) { return c.view(c.max(x, c.last(x)), {q[0], q[2], q[1]}); };
  return {by_token(c, y, q), c.sub(largest(scores), c.log(largest(weights)))};
}

double attention_flops(const OpSignature& s) {
  const Sizes sizes = forward_sizes(s);
  return (4 + 5 / static_cast<double>(sizes.width)) * products(sizes);
}

void attention_reference(ReferenceCall& call) {
  const Sizes s = sizes_of(call, 0);
  const Values &q = call.in(0), &k = call.in(1), &v = call.in(2);
  std::vector<double> weight(at(s.keys));
  s.for_each_query([&](int64_t n, int64_t h, int64_t t) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < s.keys; ++j) {
      weight[at(j)] = s.scale * dot(q, s.query(n, h, t), k, s.key(n, h, j), s.width);
      largest = std::max(largest, weight[at(j)]);
    }
    double sum = 0;
    for (double& w : weight) sum += w = std::exp(w - largest);
    for (int64_t d = 0; d < s.width; ++d) {
      double mixed = 0;
      for (int64_t j = 0; j < s.keys; ++j) mixed += weight[at(j)] / sum * v[s.key(n, h, j) + at(d)];
      call.out(0)[s.query(n, h, t) + at(d)] = mixed;
    }
    call.out(1)[s.lse(n, h, t)] = largest + std::log(sum);
  });
}

// --- Tolerances ---

// Errors relative to a number, and one in absolute terms.
struct Roundings {
  double factors = 0;  // of a product of two f32 numbers that the precision allows to be rounded
  double kept = 0;     // of weights and of gradients of scores, which tensor cores read in the tensors' half precision
  double least = 0;    // of the same, where they are subnormal
};

constexpr double kUnit = 1.0 / (1 << 24);  // what the scales are multiplied with
constexpr double kMostExponent = 80;       // an error of an exponent beyond which nothing is said

Roundings roundings_of(const Evaluation& e) {
  const DType type = e.inputs.at(0).type.dtype;
  if (is_half(type)) {
    return {.kept = unit_roundoff(type), .least = type == DType::f16 ? std::ldexp(1.0, -25) : 0};
  }
  if (e.precision == Precision::fp32) return {};
  const double unit = product_roundoff(e.precision);
  return {.factors = 4 * unit + 4 * unit * unit};
}

// The score of a query with a key, and how far off it may be.
struct Score {
  double value = 0, error = 0;
};

Score score_of(const Sizes& s, const Roundings& r, const Values& q, std::size_t query, const Values& k,
               std::size_t key) {
  const double size = std::abs(s.scale) * dot_of_magnitudes(q, query, k, key, s.width);
  return {.value = s.scale * dot(q, query, k, key, s.width),
          .error = size * (kUnit * accumulation(static_cast<double>(s.width)) + r.factors)};
}

// Weights are off by a factor of exp(+-2 error of the scores), and never sum to more than 1: a mean of values is off by
// the range of these at most. Then there are the roundings of the weights and of the sum.
std::vector<double> attention_scale(const Evaluation& e, std::size_t output) {
  const Sizes s = forward_sizes(e.signature);
  const Roundings r = roundings_of(e);
  const Values &q = e.inputs.at(0).values, &k = e.inputs.at(1).values, &v = e.inputs.at(2).values;
  const double sum_error = kUnit * (kFunctionError + accumulation(static_cast<double>(s.keys)));
  std::vector<double> scale(e.reference.at(output).values.size());
  std::vector<double> weight(at(s.keys));
  s.for_each_query([&](int64_t n, int64_t h, int64_t t) {
    double error = 0, largest = -std::numeric_limits<double>::infinity(), highest = 0;
    for (int64_t j = 0; j < s.keys; ++j) {
      const Score score = score_of(s, r, q, s.query(n, h, t), k, s.key(n, h, j));
      weight[at(j)] = score.value;
      error = std::max(error, score.error);
      largest = std::max(largest, score.value);
      highest = std::max(highest, std::abs(score.value));
    }
    error += 4 * kUnit * highest;  // of the differences that are exponents
    if (output == 1) {
      scale[s.lse(n, h, t)] = (error + sum_error + 2 * kUnit * highest) / kUnit;
      return;
    }
    double sum = 0;
    for (double& w : weight) sum += w = std::exp(w - largest);
    const double off = std::expm1(std::min(2 * error, kMostExponent));
    for (std::size_t d = 0; d < at(s.width); ++d) {
      double mixed = 0, most = 0, total = 0;
      for (int64_t j = 0; j < s.keys; ++j) {
        const double size = std::abs(v[s.key(n, h, j) + d]);
        mixed += weight[at(j)] / sum * size;
        most = std::max(most, size);
        total += size;
      }
      const double shifted = std::min(off * mixed, 2 * most), size = std::min(mixed + shifted, most);
      scale[s.query(n, h, t) + d] = (shifted + size * (2 * sum_error + r.kept + r.factors) + r.least * total) / kUnit;
    }
  });
  return scale;
}

// --- Cases ---

struct CaseSize {
  int64_t samples, queries, keys, heads, width;
};

Shape query_shape(const CaseSize& s) { return {s.samples, s.queries, s.heads, s.width}; }
Shape key_shape(const CaseSize& s) { return {s.samples, s.keys, s.heads, s.width}; }
float usual_scale(const CaseSize& s) { return 1 / std::sqrt(static_cast<float>(s.width)); }

// One query, one key, one number; queries and keys at and around blocks of 16, 32, 64 and 128; the tokens of ViT on
// CIFAR-10 and on ImageNet; widths of each class of kernels, odd ones, and beyond what any tile holds.
const std::vector<CaseSize> kCaseSizes = {
    {1, 1, 1, 1, 1},      {1, 1, 1, 1, 64},    {2, 1, 7, 3, 8},    {2, 5, 1, 2, 4},       {1, 17, 17, 2, 8},
    {3, 67, 131, 2, 7},   {2, 65, 65, 3, 64},  {1, 64, 64, 1, 64}, {1, 128, 96, 2, 32},   {1, 33, 70, 2, 33},
    {1, 197, 197, 1, 64}, {1, 130, 63, 1, 96}, {1, 31, 29, 3, 80}, {1, 129, 127, 1, 128}, {1, 65, 66, 1, 160},
    {1, 40, 40, 2, 192},  {2, 16, 48, 1, 256}, {1, 9, 12, 1, 257}, {2, 19, 33, 2, 16},    {1, 3, 300, 2, 40},
    {1, 300, 3, 2, 24},   {0, 5, 5, 2, 8},     {2, 0, 5, 2, 8},    {2, 5, 4, 0, 8}};

// Grows by `step` from token to token.
Generator by_index(const CaseSize& s, double from, double step) {
  return [=](Random& random, int64_t index) {
    const int64_t token = index / (s.heads * s.width) % s.keys;
    return from + step * static_cast<double>(token) + random.uniform(-0.01, 0.01);
  };
}

// The values of queries and keys that make scores awkward.
struct Awkward {
  const char* note;
  Generator q, k;
  float scale;
};

constexpr CaseSize kAwkwardSize{.samples = 2, .queries = 37, .keys = 149, .heads = 2, .width = 16};

std::vector<Awkward> awkward() {
  const Generator positive = uniform(0.9, 1.1);
  return {{"large scores", uniform(-30, 30), uniform(-3, 3), 0.25F},
          {"scores far below 0", positive, uniform(-70, -60), 1},
          {"scores far above 0", positive, uniform(60, 70), 1},
          {"each key's score above those before", positive, by_index(kAwkwardSize, -5, 0.1), 0.25F},
          {"each key's score below those before", positive, by_index(kAwkwardSize, 5, -0.1), 0.25F},
          {"equal scores", uniform(), constant(0.5), 0.25F},
          {"a negative scale", uniform(), uniform(), -1.5F},
          {"a scale of 0", uniform(), uniform(), 0}};
}

std::vector<InputSpec> qkv(const CaseSize& s, const Generator& q = uniform(), const Generator& k = uniform()) {
  return {f32(query_shape(s), q), f32(key_shape(s), k), f32(key_shape(s))};
}

std::vector<CaseSpec> attention_cases() {
  std::vector<CaseSpec> cases;
  for (const CaseSize& s : kCaseSizes) cases.push_back({.attrs = attributes(usual_scale(s)), .inputs = qkv(s)});
  for (const Awkward& a : awkward()) {
    cases.push_back({.attrs = attributes(a.scale), .inputs = qkv(kAwkwardSize, a.q, a.k), .note = a.note});
  }
  return cases;
}

std::vector<CaseSpec> differentiable_attention() {
  std::vector<CaseSpec> cases;
  for (const CaseSize& s : {CaseSize{1, 3, 3, 1, 2}, CaseSize{2, 2, 5, 3, 3}}) {
    cases.push_back({.attrs = attributes(usual_scale(s)), .inputs = qkv(s)});
  }
  return cases;
}

constexpr CaseSize kTypical{.samples = 16, .queries = 197, .keys = 197, .heads = 12, .width = 64};

CaseSize requested(Written& r) {
  if (r.sizes.size() != 4) bad(r, "N,T,H,D, with keys= where there are others than T");
  return {.samples = r.sizes[0],
          .queries = r.sizes[1],
          .keys = take(r, "keys", r.sizes[1]),
          .heads = r.sizes[2],
          .width = r.sizes[3]};
}

CaseSpec attention_request(Written& r) {
  const CaseSize s = requested(r);
  return {.attrs = attributes(usual_scale(s)), .inputs = qkv(s)};
}

// --- ATTENTION_BACKWARD ---

// With the weights p = exp(scale * q k' - lse) and ds = p (dy v' - the sum of dy y):
// dq = scale * ds k, dk = scale * ds' q, dv = p' dy.
std::vector<ValueId> attention_backward_parts(Composition& c) {
  const float scale = c.attrs<gpunn_attention_attrs>().scale;
  const Shape q = c.shape(c.in(1)), k = c.shape(c.in(2));
  const ValueId dy = by_head(c, c.in(0)), queries = c.scaled(by_head(c, c.in(1)), scale);
  const ValueId keys = by_head(c, c.in(2)), values = by_head(c, c.in(3)), y = by_head(c, c.in(4));
  const ValueId scores = product(c, queries, keys, false, true);
  const ValueId weights = c.exp(c.sub(scores, c.view(c.in(5), {q[0] * q[2], q[1], 1})));
  const ValueId along = c.mul(dy, y);
  const ValueId ds = c.mul(weights, c.sub(product(c, dy, values, false, true), c.sum(along, c.last(along))));
  return {by_token(c, c.scaled(product(c, ds, keys, false, false), scale), q),
          by_token(c, product(c, ds, queries, true, false), k), by_token(c, product(c, weights, dy, true, false), k)};
}

double attention_backward_flops(const OpSignature& s) {
  const Sizes sizes = backward_sizes(s);
  return (10 + 6 / static_cast<double>(sizes.width)) * products(sizes);
}

void attention_backward_reference(ReferenceCall& call) {
  const Sizes s = sizes_of(call, 1);
  const Values &dy = call.in(0), &q = call.in(1), &k = call.in(2), &v = call.in(3), &y = call.in(4), &lse = call.in(5);
  for (std::size_t i = 0; i < 3; ++i) std::ranges::fill(call.out(i), 0.0);
  s.for_each_query([&](int64_t n, int64_t h, int64_t t) {
    const std::size_t query = s.query(n, h, t);
    const double along = dot(dy, query, y, query, s.width);
    for (int64_t j = 0; j < s.keys; ++j) {
      const std::size_t key = s.key(n, h, j);
      const double weight = std::exp(s.scale * dot(q, query, k, key, s.width) - lse[s.lse(n, h, t)]);
      const double ds = weight * (dot(dy, query, v, key, s.width) - along);
      for (std::size_t d = 0; d < at(s.width); ++d) {
        call.out(0)[query + d] += s.scale * ds * k[key + d];
        call.out(1)[key + d] += s.scale * ds * q[query + d];
        call.out(2)[key + d] += weight * dy[query + d];
      }
    }
  });
}

// Each weight is off by a factor of exp(+-error of its score), and so is ds = p (dp - along), whose difference has the
// errors of two sums. Both may be rounded to half precision before they are multiplied and summed.
std::vector<double> attention_backward_scale(const Evaluation& e, std::size_t output) {
  const Sizes s = backward_sizes(e.signature);
  const Roundings r = roundings_of(e);
  const auto in = [&e](std::size_t i) -> const Values& { return e.inputs.at(i).values; };
  const Values &dy = in(0), &q = in(1), &k = in(2), &v = in(3), &y = in(4), &lse = in(5);
  const double along_width = kUnit * accumulation(static_cast<double>(s.width));
  const double terms = static_cast<double>(output == 0 ? s.keys : s.queries);
  const double summed = r.kept + r.factors + kUnit * accumulation(terms);
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  s.for_each_query([&](int64_t n, int64_t h, int64_t t) {
    const std::size_t query = s.query(n, h, t);
    const double along = dot(dy, query, y, query, s.width);
    const double along_error = along_width * dot_of_magnitudes(dy, query, y, query, s.width);
    const double offset = lse[s.lse(n, h, t)];
    for (int64_t j = 0; j < s.keys; ++j) {
      const std::size_t key = s.key(n, h, j);
      const Score score = score_of(s, r, q, query, k, key);
      const double exponent_error = score.error + 4 * kUnit * (std::abs(score.value) + std::abs(offset));
      const double weight = std::exp(score.value - offset);
      const double off = weight * (std::expm1(std::min(exponent_error, kMostExponent)) + kUnit * kFunctionError);
      if (output == 2) {
        const double error = off + (weight + off) * summed + r.least;
        for (std::size_t d = 0; d < at(s.width); ++d) scale[key + d] += error * std::abs(dy[query + d]);
        continue;
      }
      const double size = std::abs(dot(dy, query, v, key, s.width) - along);
      const double error = (along_width + r.factors) * dot_of_magnitudes(dy, query, v, key, s.width) + along_error;
      const double of_ds = off * size + (weight + off) * (error + 2 * kUnit * size);
      const double all = std::abs(s.scale) * (of_ds + (weight * size + of_ds) * summed + r.least);
      for (std::size_t d = 0; d < at(s.width); ++d) {
        if (output == 0) scale[query + d] += all * std::abs(k[key + d]);
        if (output == 1) scale[key + d] += all * std::abs(q[query + d]);
      }
    }
  });
  for (double& one : scale) one /= kUnit;
  return scale;
}

// With what the forward op saves.
CaseSpec backward_case(const CaseSize& s, float scale, const Generator& q = uniform(), const Generator& k = uniform(),
                       const std::string& note = {}) {
  const Attributes attrs = attributes(scale);
  std::vector<InputSpec> inputs = qkv(s, q, k);
  inputs.insert(inputs.begin(), f32(query_shape(s)));
  inputs.push_back(f32(query_shape(s)));
  inputs.push_back(f32({s.samples, s.heads, s.queries}));
  return {.attrs = attrs, .inputs = inputs, .note = note, .derive = [attrs](std::vector<ReferenceTensor>& in) {
            const std::vector<ReferenceTensor> of_forward{in[1], in[2], in[3]};
            in[4] = forward(GPUNN_OP_ATTENTION, attrs, of_forward, 0);
            in[5] = forward(GPUNN_OP_ATTENTION, attrs, of_forward, 1);
          }};
}

std::vector<CaseSpec> attention_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const CaseSize& s : kCaseSizes) cases.push_back(backward_case(s, usual_scale(s)));
  for (const Awkward& a : awkward()) cases.push_back(backward_case(kAwkwardSize, a.scale, a.q, a.k, a.note));
  return cases;
}

// Weights of any lse, so that a shape worth timing needs no reference.
CaseSpec timed_backward(const CaseSize& s) {
  CaseSpec spec = backward_case(s, usual_scale(s));
  spec.derive = {};
  spec.inputs.back().value = uniform(5, 6);
  return spec;
}

CaseSpec attention_backward_request(Written& r) { return timed_backward(requested(r)); }

// Scores of this size move weights by no more than f32 holds.
constexpr double kLargestScore = 1e6;

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ATTENTION,
       .gradient = attention_gradient,
       .decompose = attention_parts,
       .composite = true,
       .flops = attention_flops,
       .reference = attention_reference,
       .tolerance = {{attention_scale,
                      "the errors of the scores are magnified by exp; weights may be rounded to half precision; then a "
                      "mean",
                      true, true}},
       .cases = attention_cases,
       .differentiable = differentiable_attention,
       .typical = {.attrs = attributes(usual_scale(kTypical)), .inputs = qkv(kTypical)},
       .largest = kLargestSquared,
       .request = attention_request},
      {.id = GPUNN_OP_ATTENTION_BACKWARD,
       .decompose = attention_backward_parts,
       .composite = true,
       .flops = attention_backward_flops,
       .reference = attention_backward_reference,
       .tolerance = {{attention_backward_scale,
                      "the errors of the scores are magnified by exp; weights and gradients of scores may be rounded "
                      "to half precision; then sums",
                      true, true}},
       .cases = attention_backward_cases,
       .typical = timed_backward(kTypical),
       .largest = kLargestScore,
       .request = attention_backward_request},
  };
}

}  // namespace gpunn::ops::attention
