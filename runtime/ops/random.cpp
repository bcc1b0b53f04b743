// RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_PERMUTATION and DROPOUT.
#include <gpunn/random.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::random {

namespace {

// --- RANDOM_UNIFORM ---

// The block that holds element i of a tensor of n elements drawn at `counter`.
gpunn_random_words block_of(uint64_t seed, uint64_t stream, double counter, std::size_t n, std::size_t i) {
  const uint64_t first = gpunn_random_block(static_cast<int64_t>(counter), static_cast<int64_t>(n));
  return gpunn_philox(seed, stream, first + i / 4);
}

void random_uniform_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_attrs>();
  const double low = attrs.low, high = attrs.high;
  Values& y = call.out();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const gpunn_random_words words = block_of(attrs.seed, attrs.stream, call.in(0).at(0), y.size(), i);
    y[i] = low + gpunn_random_unit(words.word[i % 4]) * (high - low);
  }
}

std::vector<double> uniform_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_random_attrs>();
  return std::vector<double>(e.reference.at(output).values.size(), 3 * (std::abs(a.low) + std::abs(a.high)));
}

const std::vector<int64_t> kCounters = {0, 1, 12345, 5000000000};

const std::vector<Shape> kShapes = {{1}, {3}, {4}, {5}, {17, 31}, {2, 3, 5, 7}, {100003}};

CaseSpec at_counter(Attributes attrs, int64_t counter) {
  return {.attrs = std::move(attrs), .inputs = {step(counter)}, .note = "counter " + std::to_string(counter)};
}

Attributes draw(const Shape& shape, float low, float high, uint64_t seed, uint64_t stream) {
  gpunn_random_attrs attrs{};
  attrs.rank = static_cast<int32_t>(shape.size());
  std::ranges::copy(shape, attrs.dim);
  attrs.seed = seed;
  attrs.stream = stream;
  attrs.low = low;
  attrs.high = high;
  return Attributes::of(attrs);
}

constexpr uint64_t kSeed = 0x9E3779B97F4A7C15ULL;  // both words of the key

constexpr uint64_t kStream = 0x0000000500000003ULL;  // both words of the stream

// Numbers that `low` and `high` say, and those of the attributes' defaults.
std::vector<CaseSpec> drawn_cases(float low, float high) {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kCounters) {
    for (const Shape& shape : kShapes) cases.push_back(at_counter(draw(shape, low, high, kSeed, kStream), counter));
  }
  cases.push_back(at_counter(draw({1000}, 0, 1, kSeed, 0), 0));
  return cases;
}

std::vector<CaseSpec> uniform_cases() { return drawn_cases(-0.25F, 0.75F); }

CaseSpec numbers_request(Written& r) {
  if (r.sizes.size() > GPUNN_MAX_RANK) bad(r, "at most 8 dimensions");
  return {.attrs = draw(r.sizes, 0, 1, 1, 0), .inputs = {step(0)}};
}

// --- RANDOM_NORMAL ---

void random_normal_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_attrs>();
  Values& y = call.out();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const gpunn_random_words words = block_of(attrs.seed, attrs.stream, call.in(0).at(0), y.size(), i);
    const std::size_t pair = i % 4 / 2 * 2;
    const double u1 = gpunn_random_positive(words.word[pair]);
    const double u2 = gpunn_random_unit(words.word[pair + 1]);
    const double radius = std::sqrt(-2 * std::log(u1)), angle = 2 * std::numbers::pi * u2;
    const double normal = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    y[i] = attrs.low + attrs.high * normal;
  }
}

// |sin(a + d) - sin(a)| <= d, times the radius: d is the rounding of an angle up to 2 pi, of pi and of sin itself.
std::vector<double> normal_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_random_attrs>();
  constexpr double kLargestRadius = 5.77;  // sqrt(-2 ln 2^-24)
  const double scale = std::abs(a.high) * kLargestRadius * 16 + 2 * std::abs(a.low);
  return std::vector<double>(e.reference.at(output).values.size(), scale);
}

std::vector<CaseSpec> normal_cases() { return drawn_cases(0.5F, 2.0F); }

// --- RANDOM_PERMUTATION ---

void random_permutation_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_attrs>();
  const auto n = static_cast<uint32_t>(call.out().size());
  const auto counter = static_cast<int64_t>(call.in(0).at(0));
  for (uint32_t i = 0; i < n; ++i) call.out()[i] = gpunn_random_permute(attrs.seed, attrs.stream, counter, n, i);
}

std::vector<CaseSpec> permutation_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kCounters) {
    for (const int64_t n : {1, 2, 3, 5, 64, 1000, 60000}) {
      cases.push_back(at_counter(draw({n}, 0, 0, kSeed, kStream), counter));
    }
  }
  return cases;
}

CaseSpec permutation_request(Written& r) {
  if (r.sizes.size() != 1) bad(r, "how many numbers change places");
  return numbers_request(r);
}

// --- DROPOUT ---

void dropout_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_DROPOUT, c.node().attrs, {c.output_gradient(), c.input(1)}));
}

void dropout_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_dropout_attrs>();
  const Values& x = call.in(0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const gpunn_random_words words = block_of(attrs.seed, attrs.stream, call.in(1).at(0), x.size(), i);
    const bool dropped = (words.word[i % 4] >> 8) < gpunn_dropout_threshold(attrs.p);
    call.out()[i] = dropped ? 0 : x[i] / (1 - static_cast<double>(attrs.p));
  }
}

Attributes dropout_attrs(float p, uint64_t seed, uint64_t stream) {
  return Attributes::of(gpunn_dropout_attrs{.struct_size = 0, .p = p, .seed = seed, .stream = stream});
}

CaseSpec dropout_case(const Shape& shape, int64_t counter, float p) {
  return {.attrs = dropout_attrs(p, kSeed, kStream),
          .inputs = {f32(shape), step(counter)},
          .note = "counter " + std::to_string(counter)};
}

std::vector<CaseSpec> dropout_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kCounters) {
    for (const Shape& shape : kShapes) cases.push_back(dropout_case(shape, counter, 0.3F));
  }
  cases.push_back(dropout_case({1000}, 7, 0));
  cases.push_back(dropout_case({1000}, 7, 0.999F));
  return cases;
}

CaseSpec dropout_request(Written& r) { return {.attrs = dropout_attrs(0.5F, 1, 1), .inputs = {f32(r.sizes), step(0)}}; }

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_RANDOM_UNIFORM,
       .flops = no_flops,
       .reference = random_uniform_reference,
       .tolerance = {{uniform_scale, "equal bits, then a product and an addition"}},
       .cases = uniform_cases,
       .typical = {.attrs = draw({64, kTypicalChannels, 28, 28}, -1, 1, 1, 0), .inputs = {step(1)}},
       .request = numbers_request},
      {.id = GPUNN_OP_RANDOM_NORMAL,
       .flops = no_flops,
       .reference = random_normal_reference,
       .tolerance = {{normal_scale, "equal bits, then the rounding of the angle 2 pi u2 < 6.3 in f32"}},
       .cases = normal_cases,
       .typical = {.attrs = draw({64, kTypicalChannels, 28, 28}, 0, 1, 1, 0), .inputs = {step(1)}},
       .request = numbers_request},
      {.id = GPUNN_OP_RANDOM_PERMUTATION,
       .flops = no_flops,
       .reference = random_permutation_reference,
       .tolerance = {{exact_scale, "equal bits"}},
       .cases = permutation_cases,
       .typical = {.attrs = draw({60'000}, 0, 0, 1, 0), .inputs = {step(1)}},
       .request = permutation_request},
      {.id = GPUNN_OP_DROPOUT,
       .gradient = dropout_gradient,
       .reference = dropout_reference,
       .tolerance = {{few_roundings_scale, "the same elements, then 1 / (1 - p) and a product"}},
       .cases = dropout_cases,
       .typical = {.attrs = dropout_attrs(0.5F, 1, 1), .inputs = {typical_images(), step(1)}},
       .request = dropout_request},
  };
}

}  // namespace gpunn::ops::random
