// UPSAMPLE2D and its backward.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::upsampling {

namespace {

// --- UPSAMPLE2D ---

void upsample_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_UPSAMPLE2D_BACKWARD, c.node().attrs, {c.output_gradient()}));
}

// Of the larger tensor: nothing is computed, or three times a mean of two.
double flops_of_large(const Attributes& attrs, const TensorType& large) {
  constexpr double kBilinear = 9;
  const bool bilinear = attrs.as<gpunn_upsample2d_attrs>().mode == GPUNN_UPSAMPLE_BILINEAR;
  return bilinear ? kBilinear * static_cast<double>(large.elements()) : 0;
}

double upsampling_flops(const OpSignature& s) { return flops_of_large(s.attrs, s.outputs[0]); }

// An element along one axis of x and its share in an element of y.
struct Share {
  int64_t index;
  double share;
};

// What row or column `output` of y is made of. A share of 0 is left out: it must not make NaN of an infinity.
std::vector<Share> shares_of(int64_t output, int64_t inputs, int32_t factor, int32_t mode) {
  if (mode == GPUNN_UPSAMPLE_NEAREST) return {{output / factor, 1}};
  const double exact = (static_cast<double>(output) + 0.5) / factor - 0.5;
  const double place = std::clamp(exact, 0.0, static_cast<double>(inputs - 1));
  const auto first = static_cast<int64_t>(std::floor(place));
  const double second = place - std::floor(place);
  if (second == 0) return {{first, 1}};
  return {{first, 1 - second}, {first + 1, second}};
}

// Calls visit(index in x, index in y, share) for every element of x that an element of y is made of.
template <class Visit>
void for_each_share(const ReferenceCall& call, const Shape& x, const Shape& y, Visit visit) {
  const auto attrs = call.attrs<gpunn_upsample2d_attrs>();
  call.require(x.size() == 4 && y == Shape{x[0], x[1], x[2] * attrs.factor[0], x[3] * attrs.factor[1]},
               "x[N,C,H,W], y[N,C,H*f0,W*f1]");
  int64_t output = 0;
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q, ++output) {
        for (const Share& row : shares_of(p, x[2], attrs.factor[0], attrs.mode)) {
          for (const Share& column : shares_of(q, x[3], attrs.factor[1], attrs.mode)) {
            visit(at((plane * x[2] + row.index) * x[3] + column.index), at(output), row.share * column.share);
          }
        }
      }
    }
  }
}

void upsample2d_reference(ReferenceCall& call) {
  Values& y = call.out();
  y.assign(y.size(), 0);
  for_each_share(call, call.in_type(0).shape, call.out_type().shape,
                 [&](std::size_t from, std::size_t to, double share) { y[to] += share * call.in(0)[from]; });
}

double forward_terms(const OpSignature&) { return 4; }

std::vector<double> upsampling_scale(const Evaluation& e, std::size_t output) {
  const bool nearest = e.signature.attrs.as<gpunn_upsample2d_attrs>().mode == GPUNN_UPSAMPLE_NEAREST;
  return nearest ? exact_scale(e, output) : sum_scale(forward_terms)(e, output);
}

struct Upsampling {
  Shape x;
  int32_t factor[2];
};

const std::vector<Upsampling> kUpsamplings = {
    {{1, 1, 1, 1}, {1, 1}}, {{2, 3, 1, 1}, {7, 7}},  // all of y is one element
    {{2, 3, 5, 7}, {2, 2}}, {{2, 3, 5, 7}, {3, 3}},    {{1, 2, 6, 5}, {1, 4}},   {{1, 2, 6, 5}, {5, 1}},
    {{3, 1, 2, 1}, {2, 6}}, {{1, 2, 1, 17}, {3, 2}},   {{1, 1, 129, 3}, {2, 3}},  // far from the start
    {{0, 3, 4, 4}, {2, 2}}, {{2, 32, 14, 15}, {2, 2}}, {{1, 1, 3, 2}, {16, 31}},
};

Attributes upsampling_attrs(int32_t rows, int32_t columns, int32_t mode) {
  return Attributes::of(gpunn_upsample2d_attrs{.struct_size = 0, .factor = {rows, columns}, .mode = mode});
}

// Of x, or of its gradient.
std::vector<CaseSpec> cases_of(bool backward) {
  std::vector<CaseSpec> cases;
  for (const Upsampling& u : kUpsamplings) {
    const Shape y{u.x[0], u.x[1], u.x[2] * u.factor[0], u.x[3] * u.factor[1]};
    for (const int32_t mode : {GPUNN_UPSAMPLE_NEAREST, GPUNN_UPSAMPLE_BILINEAR}) {
      const auto add = [&](const Generator& values, const std::string& note) {
        cases.push_back({.attrs = upsampling_attrs(u.factor[0], u.factor[1], mode),
                         .inputs = {f32(backward ? y : u.x, values)},
                         .note = note});
      };
      add(uniform(), "");
      add(uniform(2, 3), "all above 0, so that nothing cancels");
      add(sometimes(kNan, 13, uniform()), "NaN stays among its neighbours");
    }
  }
  return cases;
}

std::vector<CaseSpec> upsampling_cases() { return cases_of(false); }

CaseSpec upsampling_request(Written& r) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W with factor= and bilinear=1 if wanted");
  const int32_t factor = take_int(r, "factor", 2);
  const int32_t mode = take(r, "bilinear", 0) != 0 ? GPUNN_UPSAMPLE_BILINEAR : GPUNN_UPSAMPLE_NEAREST;
  return {.attrs = upsampling_attrs(factor, factor, mode), .inputs = {f32(r.sizes)}};
}

// --- UPSAMPLE2D_BACKWARD ---

double upsampling_backward_flops(const OpSignature& s) {
  return flops_of_large(s.attrs, s.inputs[0]) + static_cast<double>(s.inputs[0].elements());
}

void upsample2d_backward_reference(ReferenceCall& call) {
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_share(call, call.out_type().shape, call.in_type(0).shape,
                 [&](std::size_t to, std::size_t from, double share) { dx[to] += share * call.in(0)[from]; });
}

double backward_terms(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_upsample2d_attrs>();
  return 4.0 * a.factor[0] * a.factor[1];
}

std::vector<CaseSpec> upsampling_backward_cases() { return cases_of(true); }

CaseSpec upsampling_backward_request(Written& r) {
  CaseSpec spec = upsampling_request(r);
  spec.inputs = {f32(output_shape(GPUNN_OP_UPSAMPLE2D, spec.attrs, {spec.inputs[0].type}))};
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_UPSAMPLE2D,
       .gradient = upsample_gradient,
       .flops = upsampling_flops,
       .reference = upsample2d_reference,
       .tolerance = {{upsampling_scale, "a mean of at most four elements; one alone is exact"}},
       .cases = upsampling_cases,
       .typical = {.attrs = upsampling_attrs(2, 2, GPUNN_UPSAMPLE_BILINEAR),
                   .inputs = {f32({64, kTypicalChannels, 14, 14})}},
       .request = upsampling_request},
      {.id = GPUNN_OP_UPSAMPLE2D_BACKWARD,
       .flops = upsampling_backward_flops,
       .reference = upsample2d_backward_reference,
       .tolerance = {{sum_scale(backward_terms), "a sum over the elements made of one, in any order"}},
       .cases = upsampling_backward_cases,
       .typical = {.attrs = upsampling_attrs(2, 2, GPUNN_UPSAMPLE_BILINEAR), .inputs = {typical_images()}},
       .request = upsampling_backward_request},
  };
}

}  // namespace gpunn::ops::upsampling
