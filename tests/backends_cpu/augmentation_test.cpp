#include <array>
#include <cmath>
#include <numeric>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& augmentation_runner() {
  static const Runner made(gpunn::cpu::add_augmentation_kernels);
  return made;
}

gpunn_random_shift_attrs shift(int32_t rows, int32_t columns, float flip, uint64_t seed = 1) {
  gpunn_random_shift_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  attrs.reach[0] = rows;
  attrs.reach[1] = columns;
  attrs.flip = flip;
  attrs.seed = seed;
  return attrs;
}

// 1, 2, 3, ...
Tensor<float> numbered(const Shape& shape) {
  Tensor<float> x(shape);
  std::iota(x.begin(), x.end(), 1.0F);
  return x;
}

std::vector<float> shifted(const gpunn_random_shift_attrs& attrs, const Tensor<float>& x, int64_t at) {
  const Tensor<float> border({x.shape()[1]}, std::vector<float>(static_cast<std::size_t>(x.shape()[1]), -1.0F));
  Tensor<float> y(x.shape());
  on_each_machine(y, [&] { augmentation_runner().run(GPUNN_OP_RANDOM_SHIFT, &attrs, {x, counter(at), border}, {y}); });
  return y.values();
}

}  // namespace

// The draws were computed apart from this program: with seed 1 and stream 0, the blocks 0 and 1 begin with the shares
// 0.890 0.895 0.586 and 0.672 0.874 0.476, the blocks 4 and 5 with 0.248 0.663 0.656 and 0.160 0.296 0.104.
TEST_CASE("images move as two known draws say") {
  const auto attrs = shift(1, 1, 0.5F);
  const Tensor<float> x = numbered({2, 1, 2, 3});
  // Down the rows by 1 and along the columns by 1, the second mirrored.
  CHECK(shifted(attrs, x, 0) == std::vector<float>{5, 6, -1, -1, -1, -1, -1, 12, 11, -1, -1, -1});
  // By -1 and 0; by -1 and -1, mirrored.
  CHECK(shifted(attrs, x, 2) == std::vector<float>{-1, -1, -1, 1, 2, 3, -1, -1, -1, 8, 7, -1});
}

TEST_CASE("without reach and flip an image stays as it is; with a flip of 1 every one is mirrored") {
  const Tensor<float> x = numbered({5, 3, 4, 7});
  for (const int64_t at : {int64_t{0}, int64_t{3}, int64_t{1} << 40}) {
    CHECK(shifted(shift(0, 0, 0), x, at) == x.values());
    const std::vector<float> y = shifted(shift(0, 0, 1), x, at);
    for (int64_t i = 0; i < x.size(); ++i) {
      REQUIRE(y[static_cast<std::size_t>(i)] == x[i / 7 * 7 + 6 - i % 7]);
    }
  }
}

TEST_CASE("an image's draw is of its number since the start, whatever the batch") {
  const Tensor<float> four = numbered({4, 2, 6, 5});
  const std::vector<float> whole = shifted(shift(2, 2, 0.5F), four, 3);
  std::vector<float> halves;
  for (const int64_t half : {0, 1}) {
    const auto values = four.values();
    const auto begin = values.begin() + half * 120;
    const Tensor<float> two({2, 2, 6, 5}, {begin, begin + 120});
    for (const float value : shifted(shift(2, 2, 0.5F), two, 6 + half)) halves.push_back(value);
  }
  CHECK(whole == halves);
}

TEST_CASE("every shift within reach is about equally likely, and none is beyond") {
  constexpr int64_t kImages = 60000;
  constexpr int kRows = 5, kColumns = 3;  // of a reach of 2 and 1
  Tensor<float> x({kImages, 1, 7, 6});
  for (int64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 42);
  const auto attrs = shift(2, 1, 0.25F, 7);
  const Tensor<float> border({1}, {-1.0F});
  Tensor<float> y(x.shape());
  augmentation_runner().run(GPUNN_OP_RANDOM_SHIFT, &attrs, {x, counter(11), border}, {y});
  std::vector<double> cells(static_cast<std::size_t>(2 * kRows * kColumns), 0.0);
  for (int64_t n = 0; n < kImages; ++n) {
    // Two neighbours in the middle say where they come from, and which of them was to the left.
    const auto left = static_cast<int>(y[n * 42 + 3 * 6 + 2]), right = static_cast<int>(y[n * 42 + 3 * 6 + 3]);
    REQUIRE(std::abs(left - right) == 1);
    const bool flipped = left > right;
    const int rows = left / 6 - 3, columns = left % 6 - (flipped ? 3 : 2);
    REQUIRE(std::abs(rows) <= 2);
    REQUIRE(std::abs(columns) <= 1);
    cells[static_cast<std::size_t>(((flipped ? 1 : 0) * kRows + rows + 2) * kColumns + columns + 1)] += 1;
  }
  double chi = 0.0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double expected = static_cast<double>(kImages) / (kRows * kColumns) * (i < cells.size() / 2 ? 0.75 : 0.25);
    chi += (cells[i] - expected) * (cells[i] - expected) / expected;
  }
  const auto freedom = static_cast<double>(cells.size() - 1);
  INFO("chi-squared " << chi);
  CHECK(chi < freedom + 5.0 * std::sqrt(2.0 * freedom));
}

// With seed 1 and stream 0, block 0 begins with 0.890259147 0.894684672 0.585725904, block 2 with 0.247401416
// 0.556500196 0.713129640 0.921588302.
TEST_CASE("an image turns counter-clockwise, grows about its middle, and moves") {
  const Tensor<float> x = numbered({1, 1, 3, 3}), border({1}, {-1.0F});
  const auto run = [&](const gpunn_random_affine_attrs& attrs, int64_t at) {
    Tensor<float> y(x.shape());
    on_each_machine(y, [&] {
      augmentation_runner().run(GPUNN_OP_RANDOM_AFFINE, &attrs, {x, counter(at), border}, {y});
    });
    return y.values();
  };
  const auto check = [](const std::vector<float>& found, const std::vector<float>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(found[i] - wanted[i]) < 2e-5F);
  };
  gpunn_random_affine_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  attrs.seed = 1;
  attrs.scale_low = attrs.scale_high = 1;
  CHECK(run(attrs, 0) == x.values());

  gpunn_random_affine_attrs turn = attrs;
  turn.rotate = 90.0F / (2.0F * 0.890259147F - 1.0F);
  check(run(turn, 0), {3, 6, 9, 2, 5, 8, 1, 4, 7});

  gpunn_random_affine_attrs grow = attrs;
  grow.scale_low = grow.scale_high = 2;
  CHECK(run(grow, 0) == std::vector<float>{3, 3.5F, 4, 4.5F, 5, 5.5F, 6, 6.5F, 7});
  grow.scale_low = grow.scale_high = 0.5F;  // the corners come from outside
  CHECK(run(grow, 0) == std::vector<float>{-1, -1, -1, -1, 5, -1, -1, -1, -1});
  grow.scale_low = 1;
  grow.scale_high = 1.0F + 1.0F / 0.894684672F;  // what is drawn is 2
  check(run(grow, 0), {3, 3.5F, 4, 4.5F, 5, 5.5F, 6, 6.5F, 7});

  gpunn_random_affine_attrs move = attrs;
  move.translate[0] = 1.0F / (3.0F * (2.0F * 0.713129640F - 1.0F));  // down by a row
  check(run(move, 2), {-1, -1, -1, 1, 2, 3, 4, 5, 6});
  move.translate[0] = 0;
  move.translate[1] = 0.5F / (3.0F * (2.0F * 0.921588302F - 1.0F));  // to the right by half a column
  check(run(move, 2), {0, 1.5F, 2.5F, 1.5F, 4.5F, 5.5F, 3, 7.5F, 8.5F});
}

TEST_CASE("colours change as computed by hand, and come back normalised") {
  // Red, green and blue of two pixels: 100 50 200 and 20 220 120.
  const std::vector<float> raw{100, 20, 50, 220, 200, 120};
  const Tensor<float> scale({3}, {0.5F, 0.25F, 2}), shift({3}, {-1, 2, -3});
  Tensor<float> x({1, 3, 1, 2});
  for (int64_t i = 0; i < 6; ++i) x[i] = raw[static_cast<std::size_t>(i)] * scale[i / 2] + shift[i / 2];
  const auto check = [&](float brightness, float contrast, float saturation, const std::vector<float>& wanted) {
    gpunn_random_color_attrs attrs{};
    attrs.struct_size = sizeof(attrs);
    attrs.brightness = brightness;
    attrs.contrast = contrast;
    attrs.saturation = saturation;
    attrs.white = 255;
    attrs.seed = 1;
    Tensor<float> y(x.shape());
    on_each_machine(y, [&] {
      augmentation_runner().run(GPUNN_OP_RANDOM_COLOR, &attrs, {x, counter(0), scale, shift}, {y});
    });
    for (int64_t i = 0; i < 6; ++i) {
      INFO("number " << i << ", reaches " << brightness << " " << contrast << " " << saturation);
      CHECK(std::abs((y[i] - shift[i / 2]) / scale[i / 2] - wanted[static_cast<std::size_t>(i)]) < 2e-4F);
    }
  };
  check(0, 0, 0, raw);
  check(0.5F, 0, 0, {139.025915F, 27.805183F, 69.512957F, 255, 255, 166.831098F});
  check(0, 0.5F, 0, {93.911989F, 0, 24.177755F, 255, 233.380456F, 121.805682F});
  check(0, 0, 0.5F, {101.538780F, 8.958504F, 47.252485F, 226.103684F, 210.111370F, 117.531094F});
  check(0.5F, 0.5F, 0.5F, {140.696977F, 0, 35.437310F, 255, 255, 176.268321F});
}

TEST_CASE("a rectangle is blanked where it was drawn, as much of it as is in the image") {
  const Tensor<float> x = numbered({1, 1, 4, 5}), border({1}, {-1.0F});
  const auto run = [&](int32_t rows, int32_t columns, float p) {
    gpunn_random_erase_attrs attrs{};
    attrs.struct_size = sizeof(attrs);
    attrs.size[0] = rows;
    attrs.size[1] = columns;
    attrs.p = p;
    attrs.seed = 1;
    Tensor<float> y(x.shape());
    on_each_machine(y, [&] { augmentation_runner().run(GPUNN_OP_RANDOM_ERASE, &attrs, {x, counter(0), border}, {y}); });
    Tensor<float> in_place(x);
    augmentation_runner().run(GPUNN_OP_RANDOM_ERASE, &attrs, {in_place, counter(0), border}, {in_place});
    CHECK(same_bits(in_place, y));
    return y.values();
  };
  // Around row floor(4 * 0.890) = 3, column floor(5 * 0.895) = 4.
  CHECK(run(2, 3, 0.6F) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, -1, -1, 16, 17, 18, -1, -1});
  CHECK(run(2, 3, 0.5F) == x.values());  // 0.586 is not below
  CHECK(run(0, 3, 1) == x.values());
  CHECK(run(100, 100, 1) == std::vector<float>(20, -1.0F));
}

// The draws of block 0 are as above.
TEST_CASE("a window of an image is enlarged, and the same one of a label map") {
  gpunn_random_zoom_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  attrs.low = attrs.high = 2;
  attrs.seed = 1;
  Tensor<float> x({1, 1, 4, 4}), y(x.shape());
  Tensor<int32_t> label({1, 4, 4}), moved(label.shape());
  for (int64_t i = 0; i < 16; ++i) {
    label[i] = static_cast<int32_t>(10 * (i / 4) + i % 4);
    x[i] = static_cast<float>(label[i]);
  }
  on_each_machine(y, [&] { augmentation_runner().run(GPUNN_OP_RANDOM_ZOOM, &attrs, {x, counter(0)}, {y}); });
  on_each_machine(moved, [&] {
    augmentation_runner().run(GPUNN_OP_RANDOM_ZOOM_LABELS, &attrs, {label, counter(0)}, {moved});
  });
  // The window begins at row 2 * 0.8947 and column 2 * 0.5857. The last row is held within the image.
  const std::array<float, 4> rows{1.539369F, 2.039369F, 2.539369F, 3},
      columns{0.921452F, 1.421452F, 1.921452F, 2.421452F};
  for (std::size_t h = 0; h < 4; ++h) {
    for (std::size_t w = 0; w < 4; ++w) {
      const auto i = static_cast<int64_t>(4 * h + w);
      CHECK(std::abs(y[i] - (10 * rows[h] + columns[w])) < 1e-5F);
      CHECK(moved[i] == 10 * std::lround(rows[h]) + std::lround(columns[w]));
    }
  }
  attrs.low = attrs.high = 1;
  augmentation_runner().run(GPUNN_OP_RANDOM_ZOOM, &attrs, {x, counter(3)}, {y});
  CHECK(same_bits(x, y));
}

TEST_CASE("label maps move as images do") {
  const Shape shape{40, 9, 13};
  Tensor<int32_t> label(shape), moved(shape);
  Tensor<float> x({40, 1, 9, 13}), y(x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    label[i] = static_cast<int32_t>(i % 117);
    x[i] = static_cast<float>(label[i]);
  }
  const Tensor<int32_t> outside({}, {255});
  const Tensor<float> border({1}, {255});
  const auto as_labels = [&] { return std::vector<int32_t>(y.begin(), y.end()); };
  const auto attrs = shift(3, 5, 0.5F, 9);
  augmentation_runner().run(GPUNN_OP_RANDOM_SHIFT, &attrs, {x, counter(7), border}, {y});
  on_each_machine(moved, [&] {
    augmentation_runner().run(GPUNN_OP_RANDOM_SHIFT_LABELS, &attrs, {label, counter(7), outside}, {moved});
    CHECK(moved.values() == as_labels());
  });
  gpunn_random_affine_attrs affine{};
  affine.struct_size = sizeof(affine);
  affine.seed = 3;
  affine.scale_low = affine.scale_high = 1;
  augmentation_runner().run(GPUNN_OP_RANDOM_AFFINE_LABELS, &affine, {label, counter(2), outside}, {moved});
  CHECK(same_bits(moved, label));
  affine.rotate = 30;
  affine.translate[0] = 0.25F;
  // A ramp along the columns shows where the pixels come from. NaN marks those that see the border.
  for (int64_t i = 0; i < x.size(); ++i) label[i] = static_cast<int32_t>(i % 13);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(label[i]);
  augmentation_runner().run(GPUNN_OP_RANDOM_AFFINE, &affine, {x, counter(2), Tensor<float>({1}, {kNan})}, {y});
  on_each_machine(moved, [&] {
    augmentation_runner().run(GPUNN_OP_RANDOM_AFFINE_LABELS, &affine, {label, counter(2), outside}, {moved});
  });
  int64_t inside = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (std::isnan(y[i])) continue;
    ++inside;
    CHECK(std::abs(y[i] - static_cast<float>(moved[i])) <= 0.5001F);
  }
  CHECK(inside > 2000);
}

TEST_CASE("rows are mixed with those from the other end") {
  const Tensor<float> x({3, 2}, {1, 2, 3, 4, 5, 6}), share({}, {0.25F});
  const auto run = [&](int32_t count) {
    Tensor<float> y(x.shape());
    const Tensor<int32_t> counted({}, {count});
    on_each_machine(y, [&] { augmentation_runner().run(GPUNN_OP_MIX_ROWS, nullptr, {x, share, counted}, {y}); });
    return y.values();
  };
  CHECK(run(3) == std::vector<float>{4, 5, 3, 4, 2, 3});
  CHECK(run(2) == std::vector<float>{2.5F, 3.5F, 1.5F, 2.5F, 5, 6});
  CHECK(run(0) == x.values());
  CHECK(run(-3) == x.values());  // a count may be anything
  CHECK(run(99) == run(3));
}

TEST_CASE("augmentation refuses what ops.h does not have") {
  const Tensor<float> x({2, 3, 4, 5}), border({3}), wrong({4}), flat({2, 60});
  Tensor<float> y({2, 3, 4, 5}), y_flat({2, 60});
  const auto refusal = [&](const gpunn_random_shift_attrs& attrs) {
    return augmentation_runner().refusal(GPUNN_OP_RANDOM_SHIFT, &attrs, {x, counter(0), border}, {y});
  };
  CHECK(refusal(shift(1, 1, 0.5F)).empty());
  CHECK_THAT(refusal(shift(-1, 1, 0)), Contains("reach"));
  CHECK_THAT(refusal(shift(1, 1, 1.5F)), Contains("flip"));
  CHECK_THAT(refusal(shift(1, 1, std::nanf(""))), Contains("flip"));
  const auto attrs = shift(1, 1, 0);
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_SHIFT, &attrs, {x, counter(0), wrong}, {y}),
             Contains("border"));
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_SHIFT, &attrs, {flat, counter(0), border}, {y_flat}),
             Contains("[N, C, H, W]"));
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_SHIFT, &attrs, {x, border, border}, {y}),
             Contains("counter"));

  gpunn_random_affine_attrs affine{};
  affine.struct_size = sizeof(affine);
  affine.scale_high = 1;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_AFFINE, &affine, {x, counter(0), border}, {y}),
             Contains("scale_low 0 must be above 0"));
  affine.scale_low = 2;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_AFFINE, &affine, {x, counter(0), border}, {y}),
             Contains("scale_low 2 must not be above scale_high 1"));
  affine.scale_low = 1;
  affine.rotate = -1;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_AFFINE, &affine, {x, counter(0), border}, {y}),
             Contains("rotate"));
  affine.rotate = 0;
  affine.translate[1] = 2;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_AFFINE, &affine, {x, counter(0), border}, {y}),
             Contains("translate"));
  gpunn_random_zoom_attrs zoom{};
  zoom.struct_size = sizeof(zoom);
  zoom.low = 0.5F;
  zoom.high = 2;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_ZOOM, &zoom, {x, counter(0)}, {y}), Contains("low 0.5"));
  zoom.low = 3;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_ZOOM, &zoom, {x, counter(0)}, {y}),
             Contains("must not be above high"));
  gpunn_random_color_attrs color{};
  color.struct_size = sizeof(color);
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_COLOR, &color, {x, counter(0), border, border}, {y}),
             Contains("white"));
  color.white = 1;
  color.contrast = 1.5F;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_COLOR, &color, {x, counter(0), border, border}, {y}),
             Contains("contrast"));
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_COLOR, &color, {x, counter(0), border, wrong}, {y}),
             Contains("shift"));
  gpunn_random_erase_attrs erase{};
  erase.struct_size = sizeof(erase);
  erase.size[1] = -1;
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_RANDOM_ERASE, &erase, {x, counter(0), border}, {y}),
             Contains("size"));
  const Tensor<int32_t> count({});
  CHECK_THAT(augmentation_runner().refusal(GPUNN_OP_MIX_ROWS, nullptr, {x, count, count}, {y}), Contains("share"));
}
