// RANDOM_SHIFT, RANDOM_AFFINE, both of label maps too, and RANDOM_ERASE: what moves or hides the pixels of a training
// batch. Nothing flows back.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/images.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::augmentation {

namespace {

// --- RANDOM_SHIFT ---

void random_shift_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_shift_attrs>();
  const Images x(call);
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    const double range[2] = {2.0 * attrs.reach[0] + 1, 2.0 * attrs.reach[1] + 1};
    const int64_t rows = static_cast<int64_t>(std::floor(u[0] * range[0])) - attrs.reach[0];
    const int64_t columns = static_cast<int64_t>(std::floor(u[1] * range[1])) - attrs.reach[1];
    const bool flipped = u[2] < attrs.flip;
    for (int64_t c = 0; c < x.channels(); ++c) {
      for (int64_t h = 0; h < x.rows(); ++h) {
        for (int64_t w = 0; w < x.columns(); ++w) {
          const int64_t from = flipped ? x.columns() - 1 - w : w;
          call.out()[x.place(n, c, h, w)] = x.pixel(n, c, h + rows, from + columns, call.in(2));
        }
      }
    }
  }
}

CaseSpec shift_case(const Shape& x, int32_t rows, int32_t columns, float flip, int64_t counter) {
  gpunn_random_shift_attrs attrs{};
  attrs.reach[0] = rows;
  attrs.reach[1] = columns;
  attrs.flip = flip;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream;
  return image_case(attrs, x, counter);
}

std::vector<CaseSpec> shift_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kImageCounters) {
    for (const Shape& x : kImageShapes) {
      cases.push_back(shift_case(x, 4, 4, 0.5F, counter));
      cases.push_back(shift_case(x, 0, 2, 0, counter));
    }
    cases.push_back(shift_case({6, 2, 9, 13}, 0, 0, 0, counter));  // nothing happens
    cases.push_back(shift_case({6, 2, 9, 13}, 0, 0, 1, counter));
    cases.push_back(shift_case({6, 2, 9, 13}, 40, 1, 1, counter));  // most images are pushed out
    cases.push_back(shift_case({6, 2, 9, 13}, std::numeric_limits<int32_t>::max(), 1, 0, counter));
  }
  return cases;
}

gpunn_random_shift_attrs typical_shift() {
  gpunn_random_shift_attrs attrs{};
  attrs.reach[0] = attrs.reach[1] = 4;
  attrs.flip = 0.5F;
  return attrs;
}

CaseSpec shift_request(Written& r) { return image_request(r, typical_shift()); }
CaseSpec shift_labels_request(Written& r) { return map_request(r, typical_shift()); }

// --- RANDOM_AFFINE ---

template <Sampler sample>
void random_affine_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_affine_attrs>();
  const Images x(call);
  const double middle_row = static_cast<double>(x.rows() - 1) / 2;
  const double middle_column = static_cast<double>(x.columns() - 1) / 2;
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    const double angle = (2 * u[0] - 1) * attrs.rotate * std::numbers::pi / 180;
    const double factor = attrs.scale_low + u[1] * (static_cast<double>(attrs.scale_high) - attrs.scale_low);
    const double rows = (2 * u[2] - 1) * attrs.translate[0] * static_cast<double>(x.rows());
    const double columns = (2 * u[3] - 1) * attrs.translate[1] * static_cast<double>(x.columns());
    for (int64_t c = 0; c < x.channels(); ++c) {
      for (int64_t h = 0; h < x.rows(); ++h) {
        for (int64_t w = 0; w < x.columns(); ++w) {
          // Back: not moved, not grown, then turned clockwise. Rows count downwards.
          const double up = -(static_cast<double>(h) - middle_row - rows) / factor;
          const double right = (static_cast<double>(w) - middle_column - columns) / factor;
          const double from_up = up * std::cos(angle) - right * std::sin(angle);
          const double from_right = up * std::sin(angle) + right * std::cos(angle);
          call.out()[x.place(n, c, h, w)] =
              sample(x, n, c, middle_row - from_up, middle_column + from_right, call.in(2));
        }
      }
    }
  }
}

// The place that a pixel comes from is a sum of a few products, none of which is above the image's size where it is
// inside; outside all is border. A step of one pixel changes the value by at most twice the largest.
std::vector<double> affine_image_scale(const Evaluation& e, std::size_t output) {
  const Shape& x = e.signature.inputs.at(0).shape;
  const double value = std::max(largest_magnitude(e.inputs.at(0).values), largest_magnitude(e.inputs.at(2).values));
  const double place = 8 * static_cast<double>(x.at(2) + x.at(3));
  return std::vector<double>(e.reference.at(output).values.size(), (2 * place + 8) * value);
}

CaseSpec affine_case(const Shape& x, float rotate, float translate, float low, float high, int64_t counter) {
  gpunn_random_affine_attrs attrs{};
  attrs.rotate = rotate;
  attrs.translate[0] = translate;
  attrs.translate[1] = translate / 2;
  attrs.scale_low = low;
  attrs.scale_high = high;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream + 1;
  return image_case(attrs, x, counter);
}

std::vector<CaseSpec> affine_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kImageCounters) {
    for (const Shape& x : kImageShapes) cases.push_back(affine_case(x, 15, 0.1F, 0.9F, 1.1F, counter));
    const Shape x{6, 2, 9, 13};
    cases.push_back(affine_case(x, 0, 0, 1, 1, counter));  // nothing happens
    cases.push_back(affine_case(x, 180, 0, 1, 1, counter));
    cases.push_back(affine_case(x, 0, 1, 1, 1, counter));              // many images are pushed out
    cases.push_back(affine_case(x, 360, 0, 1e-30F, 1e-30F, counter));  // one pixel is left of an image, if any
    cases.push_back(affine_case(x, 30, 0, 50, 80, counter));           // and here an image is one pixel
  }
  return cases;
}

gpunn_random_affine_attrs typical_affine() {
  gpunn_random_affine_attrs attrs{};
  attrs.rotate = 15;
  attrs.scale_low = 0.9F;
  attrs.scale_high = 1.1F;
  return attrs;
}

CaseSpec affine_request(Written& r) { return image_request(r, typical_affine()); }
CaseSpec affine_labels_request(Written& r) { return map_request(r, typical_affine()); }

// --- RANDOM_ERASE ---

void random_erase_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_random_erase_attrs>();
  const Images x(call);
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    const int64_t top = static_cast<int64_t>(std::floor(u[0] * static_cast<double>(x.rows()))) - attrs.size[0] / 2;
    const int64_t left = static_cast<int64_t>(std::floor(u[1] * static_cast<double>(x.columns()))) - attrs.size[1] / 2;
    for (int64_t c = 0; c < x.channels(); ++c) {
      for (int64_t h = 0; h < x.rows(); ++h) {
        for (int64_t w = 0; w < x.columns(); ++w) {
          const bool erased =
              u[2] < attrs.p && h >= top && h < top + attrs.size[0] && w >= left && w < left + attrs.size[1];
          call.out()[x.place(n, c, h, w)] = erased ? call.in(2)[at(c)] : call.in(0)[x.place(n, c, h, w)];
        }
      }
    }
  }
}

CaseSpec erase_case(const Shape& x, int32_t rows, int32_t columns, float p, int64_t counter) {
  gpunn_random_erase_attrs attrs{};
  attrs.size[0] = rows;
  attrs.size[1] = columns;
  attrs.p = p;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream + 3;
  return image_case(attrs, x, counter);
}

std::vector<CaseSpec> erase_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t counter : kImageCounters) {
    for (const Shape& x : kImageShapes) cases.push_back(erase_case(x, 4, 3, 0.5F, counter));
    const Shape x{6, 2, 9, 13};
    cases.push_back(erase_case(x, 5, 5, 0, counter));  // nothing happens
    cases.push_back(erase_case(x, 0, 5, 1, counter));  // nor here
    cases.push_back(erase_case(x, 1, 1, 1, counter));
    cases.push_back(erase_case(x, 20, 30, 1, counter));  // the rectangle covers the image
    cases.push_back(erase_case(x, std::numeric_limits<int32_t>::max(), 2, 1, counter));
  }
  return cases;
}

gpunn_random_erase_attrs typical_erase() {
  gpunn_random_erase_attrs attrs{};
  attrs.size[0] = attrs.size[1] = 8;
  attrs.p = 1;
  return attrs;
}

CaseSpec erase_request(Written& r) { return image_request(r, typical_erase()); }

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_RANDOM_SHIFT,
       .flops = no_flops,
       .reference = random_shift_reference,
       .tolerance = {{exact_scale, "equal bits choose; values are only moved"}},
       .cases = shift_cases,
       .typical = typical_image_case(typical_shift()),
       .request = shift_request},
      {.id = GPUNN_OP_RANDOM_SHIFT_LABELS,
       .flops = no_flops,
       .reference = random_shift_reference,
       .tolerance = {{exact_scale, "equal bits choose; values are only moved"}},
       .cases = label_map_cases<shift_cases>,
       .typical = typical_map_case(typical_shift()),
       .request = shift_labels_request},
      {.id = GPUNN_OP_RANDOM_AFFINE,
       .flops = flops_per_output<17>  // its place, and three interpolations of three operations each
       ,
       .reference = random_affine_reference<bilinear>,
       .tolerance = {{affine_image_scale,
                      "a place within H + W, computed in f32 at worst, and from pixel to pixel values change by twice "
                      "the largest"}},
       .cases = affine_cases,
       .typical = typical_image_case(typical_affine()),
       .request = affine_request},
      {.id = GPUNN_OP_RANDOM_AFFINE_LABELS,
       .flops = flops_per_output<8>,  // its place
       .reference = random_affine_reference<nearest>,
       .tolerance = {{exact_scale, "the place is computed in f64, so that its nearest pixel is sure"}},
       .cases = label_map_cases<affine_cases>,
       .typical = typical_map_case(typical_affine()),
       .request = affine_labels_request},
      {.id = GPUNN_OP_RANDOM_ERASE,
       .flops = no_flops,
       .reference = random_erase_reference,
       .tolerance = {{exact_scale, "equal bits choose; values are only moved"}},
       .cases = erase_cases,
       .typical = typical_image_case(typical_erase()),
       .request = erase_request},
  };
}

}  // namespace gpunn::ops::augmentation
