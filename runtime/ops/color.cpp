// RANDOM_COLOR: what is done to the colours of a training batch. Nothing flows back.
#include <algorithm>
#include <cmath>

#include "ops/images.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::color {

namespace {

// --- RANDOM_COLOR ---

// The channels of one pixel.
double grey_of(const Values& v) {
  if (v.size() == 3) return 0.299 * v[0] + 0.587 * v[1] + 0.114 * v[2];
  double sum = 0;
  for (const double value : v) sum += value;
  return sum / static_cast<double>(v.size());
}

void random_color_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_color_attrs>();
  const double white = attrs.white;
  const Images x(call);
  const Values &scale = call.in(2), &shift = call.in(3);
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    // towards + f * (v - towards), held within 0 and white.
    const auto change = [&](double v, double towards, double share, double reach) {
      const double f = 1 + (2 * share - 1) * reach;
      return reach > 0 ? std::clamp(towards + f * (v - towards), 0.0, white) : v;
    };
    std::vector<Values> pixels;  // [H * W][C]
    double mean = 0;
    for (int64_t i = 0; i < x.rows() * x.columns(); ++i) {
      Values v;
      for (int64_t c = 0; c < x.channels(); ++c) {
        const double raw = (call.in(0)[x.place(n, c, 0, 0) + at(i)] - shift[at(c)]) / scale[at(c)];
        v.push_back(change(raw, 0, u[0], attrs.brightness));
      }
      mean += grey_of(v) / static_cast<double>(x.rows() * x.columns());
      pixels.push_back(v);
    }
    for (int64_t i = 0; i < x.rows() * x.columns(); ++i) {
      Values& v = pixels[at(i)];
      for (double& value : v) value = change(value, mean, u[1], attrs.contrast);
      const double grey = grey_of(v);
      for (int64_t c = 0; c < x.channels(); ++c) {
        const double value = change(v[at(c)], grey, u[2], attrs.saturation);
        call.out()[x.place(n, c, 0, 0) + at(i)] = value * scale[at(c)] + shift[at(c)];
      }
    }
  }
}

// A colour is off by some roundings of itself or of white, of any channel since greys mix them; factors reach 2. Then
// it is multiplied with the channel's scale and the shift is added.
std::vector<double> color_scale(const Evaluation& e, std::size_t output) {
  const Shape& shape = e.signature.inputs.at(0).shape;
  const std::vector<double>&scale = e.inputs.at(2).values, &shift = e.inputs.at(3).values;
  double color = e.signature.attrs.as<gpunn_random_color_attrs>().white;
  const double largest = largest_magnitude(e.inputs.at(0).values);
  for (std::size_t c = 0; c < scale.size(); ++c) {
    color = std::max(color, (largest + std::abs(shift[c])) / std::abs(scale[c]));
  }
  std::vector<double> result(e.reference.at(output).values.size());
  const auto plane = static_cast<std::size_t>(shape.at(2) * shape.at(3));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t c = i / plane % scale.size();
    result[i] = 32 * color * std::abs(scale[c]) + 2 * std::abs(shift[c]);
  }
  return result;
}

CaseSpec color_case(const Shape& x, float brightness, float contrast, float saturation, bool bytes, int64_t counter) {
  gpunn_random_color_attrs attrs{};
  attrs.brightness = brightness;
  attrs.contrast = contrast;
  attrs.saturation = saturation;
  attrs.white = bytes ? 255.0F : 1.0F;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream + 2;
  // Of bytes with a mean of about 128 and a deviation of about 64, or of numbers from 0 to 1.
  const InputSpec scale = f32({x[1]}, bytes ? uniform(0.014, 0.017) : uniform(3.5, 4.5));
  const InputSpec shift = f32({x[1]}, uniform(-2.1, -1.9));
  return {.attrs = Attributes::of(attrs),
          .inputs = {f32(x, uniform(-2, 2)), step(counter), scale, shift},
          .note = "counter " + std::to_string(counter)};
}

std::vector<CaseSpec> color_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kImageCounters) {
    for (const Shape& x : kImageShapes) {
      cases.push_back(color_case(x, 0.4F, 0.4F, 0.4F, true, counter));
      cases.push_back(color_case(x, 1, 1, 1, false, counter));
    }
    const Shape x{5, 3, 9, 13};
    cases.push_back(color_case(x, 0, 0, 0, true, counter));  // nothing happens
    cases.push_back(color_case(x, 0.5F, 0, 0, true, counter));
    cases.push_back(color_case(x, 0, 0.5F, 0, true, counter));
    cases.push_back(color_case(x, 0, 0, 0.5F, true, counter));
    cases.push_back(color_case({2, 5, 4, 6}, 0.5F, 0.5F, 0.5F, true, counter));  // grey is the mean of 5 channels
  }
  return cases;
}

Attributes color_attrs() {
  gpunn_random_color_attrs attrs{};
  attrs.brightness = attrs.contrast = attrs.saturation = 0.4F;
  attrs.white = 255;
  return Attributes::of(attrs);
}

CaseSpec typical_color() {
  return {.attrs = color_attrs(),
          .inputs = {f32({128, 3, 64, 64}), step(1), f32({3}, constant(0.016)), f32({3}, constant(-2))}};
}

// Of colours from 0 to 255.
CaseSpec color_request(Written& r) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W");
  const Shape channels{r.sizes[1]};
  return {.attrs = color_attrs(),
          .inputs = {f32(r.sizes), step(0), f32(channels, constant(1.0 / 64)), f32(channels, constant(-2))}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_RANDOM_COLOR,
       .flops = flops_per_output<12>,
       .reference = random_color_reference,
       .tolerance = {{color_scale, "colours up to white, computed in f32 at worst, and normalised again"}},
       .cases = color_cases,
       .typical = typical_color(),
       .few = "C",
       .request = color_request},
  };
}

}  // namespace gpunn::ops::color
