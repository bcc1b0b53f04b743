// Pictures of images that a model makes: details of enlarged ones, and painted ones as a whole.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

using chart::escaped;

namespace {

constexpr int64_t kCropSide = 96;  // pixels of the image
constexpr int64_t kStep = 16;      // between the places that are looked at
constexpr int64_t kMagnified = 3;

struct Corner {
  int64_t y = 0, x = 0;
};

struct Window {
  int64_t height = 0, width = 0;
};

Window window_of(const ImageReport& image) {
  return {std::min(kCropSide, image.height), std::min(kCropSide, image.width)};
}

// By how much the image is off the original in a window, in squares.
double error_in(const ImageReport& image, const std::vector<uint8_t>& bytes, const Corner& corner) {
  const Window window = window_of(image);
  double sum = 0;
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t y = corner.y; y < corner.y + window.height; ++y) {
      for (int64_t x = corner.x; x < corner.x + window.width; ++x) {
        const auto at = static_cast<std::size_t>((c * image.height + y) * image.width + x);
        const double error = static_cast<double>(bytes[at]) - static_cast<double>(image.original[at]);
        sum += error * error;
      }
    }
  }
  return sum;
}

// Where bicubic and the original differ most: there is something to be seen.
Corner place_of(const ImageReport& image) {
  const Window window = window_of(image);
  Corner best;
  double most = -1;
  for (int64_t y = 0; y + window.height <= image.height; y += kStep) {
    for (int64_t x = 0; x + window.width <= image.width; x += kStep) {
      const double error = error_in(image, image.bicubic, {y, x});
      if (error <= most) continue;
      most = error;
      best = {y, x};
    }
  }
  return best;
}

chart::Raster crop(const ImageReport& image, const std::vector<uint8_t>& bytes, const Corner& corner) {
  const Window window = window_of(image);
  chart::Raster raster{window.width * kMagnified, window.height * kMagnified, image.channels, {}};
  for (int64_t y = 0; y < raster.height; ++y) {
    for (int64_t x = 0; x < raster.width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) {
        const int64_t row = corner.y + y / kMagnified, column = corner.x + x / kMagnified;
        raster.pixels.push_back(bytes[static_cast<std::size_t>((c * image.height + row) * image.width + column)]);
      }
    }
  }
  return raster;
}

chart::Raster whole(const ImageReport& image, const std::vector<uint8_t>& bytes) {
  chart::Raster raster{image.width, image.height, image.channels, {}};
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  raster.pixels.reserve(bytes.size());
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(image.channels); ++c) {
      raster.pixels.push_back(bytes[c * pixels + i]);
    }
  }
  return raster;
}

std::string scores_text(const ImageReport& image, const std::string& prefix) {
  if (image.scores.find(prefix + "psnr") == nullptr) return "";
  const double psnr = image.scores.value(prefix + "psnr"), ssim = image.scores.value(prefix + "ssim");
  return metric_text(psnr, [](double value) { return fmt::format("{:.2f}", value); }) + " dB, SSIM " + decimal(ssim);
}

// Details of what a model enlarged.
std::string details(const ClassEvalReport& report) {
  std::string html = fmt::format(
      "<p>A detail of each image, where bicubic is farthest from the original, {} times as large.</p>\n", kMagnified);
  for (const ImageReport& one : report.images) {
    const Corner corner = place_of(one);
    const std::array<std::pair<const char*, const std::vector<uint8_t>*>, 3> shown = {
        std::pair{"bicubic", &one.bicubic}, {"model", &one.enlarged}, {"original", &one.original}};
    const std::array<std::string, 3> scores = {scores_text(one, "bicubic_"), scores_text(one, ""), ""};
    html += fmt::format("<h3>{}</h3>\n<div class=\"crops\">\n", escaped(one.name));
    for (std::size_t i = 0; i < shown.size(); ++i) {
      html += "<figure>" + image(crop(one, *shown[i].second, corner), fmt::format("{}: {}", one.name, shown[i].first)) +
              fmt::format("<figcaption><strong>{}</strong> {}</figcaption></figure>\n", shown[i].first, scores[i]);
    }
    html += "</div>\n";
  }
  return html;
}

// What a model painted, whole, beside what it painted.
std::string paintings(const ClassEvalReport& report) {
  std::string html;
  for (const ImageReport& one : report.images) {
    html += fmt::format("<h3>{}</h3>\n<div class=\"crops\">\n", escaped(one.name));
    for (const auto& [what, bytes] : {std::pair{"photograph", &one.original}, {"painted", &one.enlarged}}) {
      html += "<figure>" + image(whole(one, *bytes), fmt::format("{}: {}", one.name, what)) +
              fmt::format("<figcaption><strong>{}</strong></figcaption></figure>\n", what);
    }
    html += "</div>\n";
  }
  return html;
}

}  // namespace

std::string crops_section(const ClassEvalReport& report) {
  if (report.images.empty()) return "";
  const auto is_painted = [](const ImageReport& one) { return one.bicubic == one.original; };
  if (std::ranges::all_of(report.images, is_painted)) return paintings(report);
  return details(report);
}

}  // namespace gpunn::reports
