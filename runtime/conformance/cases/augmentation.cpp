#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

constexpr uint64_t kImageSeed = 0x9E3779B97F4A7C15ULL;    // both words of the key
constexpr uint64_t kImageStream = 0x0000000400000003ULL;  // both words of the stream
const std::vector<double> kImageCounters = {0, 12345, 5000000000.0};
// One pixel, one row or column, primes, and no images or pixels at all.
const std::vector<Shape> kImageShapes = {{1, 1, 1, 1},   {3, 2, 1, 7},    {2, 3, 5, 1}, {5, 3, 7, 11},
                                         {7, 1, 28, 28}, {31, 3, 32, 32}, {0, 3, 4, 4}, {2, 1, 0, 5}};

std::string at_counter(double counter) { return "counter " + std::to_string(static_cast<int64_t>(counter)); }

InputSpec counter_of(double counter) { return i64({}, constant(counter)); }

Case shift(const Shape& x, int32_t rows, int32_t columns, float flip, double counter) {
  gpunn_random_shift_attrs attrs{};
  attrs.reach[0] = rows;
  attrs.reach[1] = columns;
  attrs.flip = flip;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream;
  return make_case({.op = GPUNN_OP_RANDOM_SHIFT,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32(x), counter_of(counter), f32({x[1]}, uniform(2, 3))},
                    .note = at_counter(counter)});
}

void add_shifts(std::vector<Case>& cases) {
  for (const double counter : kImageCounters) {
    for (const Shape& x : kImageShapes) {
      cases.push_back(shift(x, 4, 4, 0.5F, counter));
      cases.push_back(shift(x, 0, 2, 0, counter));
    }
    cases.push_back(shift({6, 2, 9, 13}, 0, 0, 0, counter));  // nothing happens
    cases.push_back(shift({6, 2, 9, 13}, 0, 0, 1, counter));
    cases.push_back(shift({6, 2, 9, 13}, 40, 1, 1, counter));  // most images are pushed out
    cases.push_back(shift({6, 2, 9, 13}, std::numeric_limits<int32_t>::max(), 1, 0, counter));
  }
}

Case affine(const Shape& x, float rotate, float translate, float low, float high, double counter) {
  gpunn_random_affine_attrs attrs{};
  attrs.rotate = rotate;
  attrs.translate[0] = translate;
  attrs.translate[1] = translate / 2;
  attrs.scale_low = low;
  attrs.scale_high = high;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream + 1;
  return make_case({.op = GPUNN_OP_RANDOM_AFFINE,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32(x), counter_of(counter), f32({x[1]}, uniform(2, 3))},
                    .note = at_counter(counter)});
}

void add_affines(std::vector<Case>& cases) {
  for (const double counter : kImageCounters) {
    for (const Shape& x : kImageShapes) cases.push_back(affine(x, 15, 0.1F, 0.9F, 1.1F, counter));
    const Shape x{6, 2, 9, 13};
    cases.push_back(affine(x, 0, 0, 1, 1, counter));  // nothing happens
    cases.push_back(affine(x, 180, 0, 1, 1, counter));
    cases.push_back(affine(x, 0, 1, 1, 1, counter));              // many images are pushed out
    cases.push_back(affine(x, 360, 0, 1e-30F, 1e-30F, counter));  // one pixel is left of an image, if any
    cases.push_back(affine(x, 30, 0, 50, 80, counter));           // and here an image is one pixel
  }
}

Case color(const Shape& x, float brightness, float contrast, float saturation, bool bytes, double counter) {
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
  return make_case({.op = GPUNN_OP_RANDOM_COLOR,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32(x, uniform(-2, 2)), counter_of(counter), scale, shift},
                    .note = at_counter(counter)});
}

void add_colors(std::vector<Case>& cases) {
  for (const double counter : kImageCounters) {
    for (const Shape& x : kImageShapes) {
      cases.push_back(color(x, 0.4F, 0.4F, 0.4F, true, counter));
      cases.push_back(color(x, 1, 1, 1, false, counter));
    }
    const Shape x{5, 3, 9, 13};
    cases.push_back(color(x, 0, 0, 0, true, counter));  // nothing happens
    cases.push_back(color(x, 0.5F, 0, 0, true, counter));
    cases.push_back(color(x, 0, 0.5F, 0, true, counter));
    cases.push_back(color(x, 0, 0, 0.5F, true, counter));
    cases.push_back(color({2, 5, 4, 6}, 0.5F, 0.5F, 0.5F, true, counter));  // no three channels: grey is their mean
  }
}

Case erase(const Shape& x, int32_t rows, int32_t columns, float p, double counter) {
  gpunn_random_erase_attrs attrs{};
  attrs.size[0] = rows;
  attrs.size[1] = columns;
  attrs.p = p;
  attrs.seed = kImageSeed;
  attrs.stream = kImageStream + 3;
  return make_case({.op = GPUNN_OP_RANDOM_ERASE,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32(x), counter_of(counter), f32({x[1]}, uniform(2, 3))},
                    .note = at_counter(counter)});
}

void add_erases(std::vector<Case>& cases) {
  for (const double counter : kImageCounters) {
    for (const Shape& x : kImageShapes) cases.push_back(erase(x, 4, 3, 0.5F, counter));
    const Shape x{6, 2, 9, 13};
    cases.push_back(erase(x, 5, 5, 0, counter));  // nothing happens
    cases.push_back(erase(x, 0, 5, 1, counter));  // nor here
    cases.push_back(erase(x, 1, 1, 1, counter));
    cases.push_back(erase(x, 20, 30, 1, counter));  // the rectangle covers the image
    cases.push_back(erase(x, std::numeric_limits<int32_t>::max(), 2, 1, counter));
  }
}

Case mix(const Shape& x, double share, int64_t count) {
  return make_case({.op = GPUNN_OP_MIX_ROWS,
                    .inputs = {f32(x), f32({}, constant(share)), i32({}, constant(static_cast<double>(count)))},
                    .note = "share " + std::to_string(share) + ", count " + std::to_string(count)});
}

void add_mixes(std::vector<Case>& cases) {
  for (const double share : {0.0, 0.3, 1.0}) {
    for (const int64_t count : {0, 1, 4, 5}) cases.push_back(mix({5, 3, 7, 11}, share, count));
    cases.push_back(mix({1}, share, 1));
    cases.push_back(mix({1031}, share, 1031));
    cases.push_back(mix({33, 10}, share, 17));
    cases.push_back(mix({0, 4}, share, 0));
    cases.push_back(mix({4, 0}, share, 4));
  }
}

}  // namespace

std::vector<Case> augmentation_cases() {
  std::vector<Case> cases;
  add_shifts(cases);
  add_affines(cases);
  add_colors(cases);
  add_erases(cases);
  add_mixes(cases);
  return cases;
}

}  // namespace gpunn::conformance
