// RANDOM_ZOOM and RANDOM_ZOOM_LABELS. Nothing flows back.
#include <algorithm>

#include "ops/images.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::random_zoom {

namespace {

// The place in a line of `size` pixels that pixel i of y shows. The window has size / factor pixels.
double place(double share, double factor, int64_t size, int64_t i) {
  const auto pixels = static_cast<double>(size);
  const double begin = share * (pixels - pixels / factor);
  const double middle = begin + (static_cast<double>(i) + 0.5) / factor;
  return std::clamp(middle - 0.5, 0.0, pixels - 1);
}

template <Sampler sample>
void random_zoom_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_zoom_attrs>();
  const Images x(call);
  const Values outside(at(x.channels()), 0.0);  // no place is outside
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    const double factor = attrs.low + u[0] * (static_cast<double>(attrs.high) - attrs.low);
    for (int64_t c = 0; c < x.channels(); ++c) {
      for (int64_t h = 0; h < x.rows(); ++h) {
        for (int64_t w = 0; w < x.columns(); ++w) {
          call.out()[x.place(n, c, h, w)] =
              sample(x, n, c, place(u[1], factor, x.rows(), h), place(u[2], factor, x.columns(), w), outside);
        }
      }
    }
  }
}

// A place is a sum of numbers within the image's size. A step of one pixel changes the value by at most twice the
// largest.
std::vector<double> zoom_scale(const Evaluation& e, std::size_t output) {
  const Shape& x = e.signature.inputs.at(0).shape;
  const double place_error = 8 * static_cast<double>(x.at(2) + x.at(3));
  const double value = largest_magnitude(e.inputs.at(0).values);
  return std::vector<double>(e.reference.at(output).values.size(), (2 * place_error + 8) * value);
}

Attributes attributes(float low, float high) {
  gpunn_random_zoom_attrs attrs{};
  attrs.low = low;
  attrs.high = high;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream + 5;
  return Attributes::of(attrs);
}

CaseSpec zoom_case(const Shape& x, float low, float high, int64_t counter) {
  return {
      .attrs = attributes(low, high), .inputs = {f32(x), step(counter)}, .note = "counter " + std::to_string(counter)};
}

std::vector<CaseSpec> zoom_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kImageCounters) {
    for (const Shape& x : kImageShapes) cases.push_back(zoom_case(x, 1, 2, counter));
    const Shape x{6, 2, 9, 13};
    cases.push_back(zoom_case(x, 1, 1, counter));  // nothing happens
    cases.push_back(zoom_case(x, 2, 2, counter));
    cases.push_back(zoom_case(x, 1.5F, 4, counter));
    cases.push_back(zoom_case(x, 50, 80, counter));  // the window is less than a pixel
    cases.push_back(zoom_case(x, 1, 1e30F, counter));
  }
  return cases;
}

CaseSpec zoom_request(Written& r) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W");
  return zoom_case(r.sizes, 1, 2, 0);
}

CaseSpec zoom_labels_request(Written& r) {
  if (r.sizes.size() != 3) bad(r, "N,H,W");
  return of_label_maps(zoom_case({r.sizes[0], 1, r.sizes[1], r.sizes[2]}, 1, 2, 0));
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_RANDOM_ZOOM,
       .flops = flops_per_output<11>,  // a place, and three interpolations of three operations each
       .reference = random_zoom_reference<bilinear>,
       .tolerance = {{zoom_scale,
                      "a place within H + W, computed in f32 at worst, and from pixel to pixel values change by twice "
                      "the largest"}},
       .cases = zoom_cases,
       .typical = {.attrs = attributes(1, 2), .inputs = {typical_images(), step(1)}},
       .request = zoom_request},
      {.id = GPUNN_OP_RANDOM_ZOOM_LABELS,
       .flops = flops_per_output<2>,
       .reference = random_zoom_reference<nearest>,
       .tolerance = {{exact_scale, "the place is computed in f64, so that its nearest pixel is sure"}},
       .cases = label_map_cases<zoom_cases>,
       .typical = of_label_maps(zoom_case({64, 1, 224, 224}, 1, 2, 1)),
       .request = zoom_labels_request},
  };
}

}  // namespace gpunn::ops::random_zoom
