// What an evaluation shows of label maps.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/segmentation/draw_map.hpp"
#include "fields/standardise.hpp"
#include "tasks/segmentation/segmentation.hpp"
#include "tasks/worst.hpp"

namespace gpunn::tasks::pixels {

using data::Image;
using data::LabelMap;

namespace {

constexpr int64_t kGap = 4;          // white pixels between pictures
constexpr int64_t kLeastSide = 160;  // smaller pictures are shown in larger pixels
constexpr uint8_t kWhite = 255;

// A row that may be among the worst, with its maps.
struct Candidate {
  int64_t row = 0;
  double loss = 0;
  LabelMap truth, predicted;
};

// A sample [C,H,W] as a picture of 8 bits. Of floats, the smallest is black and the largest white; NaN is black.
Image picture_of(const Shape& sample, DType dtype, std::span<const std::byte> values) {
  Image image{sample.at(1), sample.at(2), sample.at(0) == 3 ? 3 : 1, {}};
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  const auto channels = static_cast<std::size_t>(image.channels);
  image.values.resize(pixels * channels);
  double low = 0, high = 255;
  if (dtype != DType::u8) {
    low = HUGE_VAL, high = -HUGE_VAL;
    for (std::size_t i = 0; i < pixels * channels; ++i) {
      const double value = fields::element_of(dtype, values, i);
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    }
  }
  const double scale = high > low ? 255 / (high - low) : 0;
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < channels; ++c) {
      const double value = fields::element_of(dtype, values, c * pixels + i);
      const double shown = std::isfinite(value) ? scale * (value - low) : value > 0 ? 255.0 : 0.0;
      image.values[i * channels + c] = static_cast<uint8_t>(std::lround(shown));
    }
  }
  return image;
}

// Copies a picture in colours to a place of a sheet in colours, each pixel magnified.
void paste(const Image& picture, int64_t magnified, int64_t left, Image& sheet) {
  for (int64_t y = 0; y < picture.height * magnified; ++y) {
    for (int64_t x = 0; x < picture.width * magnified; ++x) {
      const uint8_t* from = picture.values.data() + ((y / magnified) * picture.width + x / magnified) * 3;
      std::memcpy(sheet.values.data() + (y * sheet.width + left + x) * 3, from, 3);
    }
  }
}

// A picture, and the same with the maps of the truth and of the prediction, side by side: a PNG file's bytes.
std::string drawn(const Image& picture, const Candidate& one) {
  const Image colours = convert_channels(picture, 3);
  const int64_t longer = std::max<int64_t>({colours.height, colours.width, 1});
  const int64_t magnified = std::max<int64_t>(1, kLeastSide / longer);
  const int64_t width = colours.width * magnified;
  Image sheet{colours.height * magnified, 3 * width + 2 * kGap, 3, {}};
  sheet.values.assign(static_cast<std::size_t>(sheet.height * sheet.width * 3), kWhite);
  int64_t left = 0;
  for (const LabelMap* map : {static_cast<const LabelMap*>(nullptr), &one.truth, &one.predicted}) {
    Image shown = colours;
    if (map != nullptr) draw_map(shown, *map);
    paste(shown, magnified, left, sheet);
    left += width + kGap;
  }
  return encode_png(sheet);
}

class SegmentedRows : public Report {
 public:
  explicit SegmentedRows(ReportInputs inputs) : inputs_(std::move(inputs)), worst_(inputs_.worst) {}

  void add(const EvaluatedRows& rows) override {
    const Shape& shape = rows.split().fields.at(rows.target().name).type.shape;
    const std::span<const std::byte> truth = rows.bytes_of(rows.target().name);
    const std::size_t pixels = truth.size() / std::max<std::size_t>(rows.count(), 1);
    for (std::size_t i = 0; i < rows.count(); ++i) {
      worst_.add(rows.losses[i], [&] {
        Candidate one{rows.first + static_cast<int64_t>(i), rows.losses[i], {shape[1], shape[2], {}}, {}};
        one.predicted = one.truth;
        one.truth.ids.resize(pixels);
        std::memcpy(one.truth.ids.data(), truth.data() + i * pixels, pixels);
        for (const float id : rows.prediction(i)) one.predicted.ids.push_back(static_cast<uint8_t>(id));
        return one;
      });
    }
  }

  void finish(const Accumulated& sums, ClassEvalReport& report) override {
    const std::vector<std::string>& names = inputs_.dataset.fields.target().names;
    const std::vector<ClassPixels> classes = class_pixels(sums);
    for (std::size_t i = 0; i < classes.size(); ++i) {
      report.outputs.push_back({.index = static_cast<int64_t>(i),
                                .name = names.at(i),
                                .rows = classes[i].pixels,
                                .scores = Scores({{{"iou", "IoU", true, true}, classes[i].iou},
                                                  {{"accuracy", "accuracy", true, true}, classes[i].accuracy},
                                                  {{"dice", "dice", true, true}, classes[i].dice}})});
    }
    report.confusion.names = names;
    for (const double count : sums.of(kConfusion)) report.confusion.counts.push_back(std::llround(count));
    report.counted = "pixels";
    report.confusion.note = "Counts pixels.";
    report.pictures_note = "The picture, its true classes and the predicted ones, in the colours of PASCAL VOC.";
    for (const Candidate& one : worst_.take()) {
      report.worst_pictures.push_back({.row = one.row, .loss = one.loss, .picture = drawn(sample(one.row), one)});
    }
  }

 private:
  Image sample(int64_t row) const {
    const Split& test = inputs_.dataset.test;
    const Split& split = test.singles.empty() ? test : test.singles[static_cast<std::size_t>(row)];
    return picture_of({split.samples.shape.begin() + 1, split.samples.shape.end()}, split.samples.dtype,
                      inputs_.sample(row));
  }

  ReportInputs inputs_;
  Worst<Candidate> worst_;
};

}  // namespace

std::unique_ptr<Report> make_report(const ReportInputs& inputs) { return std::make_unique<SegmentedRows>(inputs); }

}  // namespace gpunn::tasks::pixels
