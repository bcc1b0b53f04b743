// The bicubic figures of the literature, from the test images themselves.
#include <gpunn/data.hpp>

#include <cmath>
#include <filesystem>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "data/images/bicubic.hpp"
#include "data/images/image.hpp"
#include "fields/values.hpp"
#include "tasks/super_resolution/image_quality.hpp"
#include "tasks/super_resolution/quality.hpp"

using namespace gpunn;

namespace {

namespace fs = std::filesystem;

struct Quality {
  double psnr = 0, ssim = 0;
};

Quality bicubic_quality(const fs::path& folder, int64_t scale) {
  Quality sum;
  double images = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const data::Image file = data::read_image_file(entry.path());
    data::Planes image{1, file.height, file.width};
    for (std::size_t i = 0; i < file.values.size(); i += static_cast<std::size_t>(file.channels)) {
      const uint8_t* const at = file.values.data() + i;
      image.values.push_back(static_cast<float>(file.channels == 1 ? *at : data::luma(at[0], at[1], at[2])) / 255);
    }
    image = data::cropped_to_multiple(image, scale);
    const auto factor = static_cast<double>(scale);
    const auto larger = tasks::measured_plane(data::resize_bicubic(data::resize_bicubic(image, 1 / factor), factor));
    const auto original = tasks::measured_plane(image);
    const tasks::ComparedPlanes planes{larger, original, image.height, image.width, scale};
    sum.psnr += tasks::psnr(planes);
    sum.ssim += tasks::ssim(planes);
    images += 1;
  }
  return {sum.psnr / images, sum.ssim / images};
}

}  // namespace

TEST_CASE("bicubic has the published PSNR and SSIM on Set5 and Set14") {
  const fs::path folder = test::real_data() / "super_resolution";
  if (test::real_data().empty() || !fs::is_directory(folder)) {
    WARN("no Set5 here: set GPUNN_DATA_DIR; nothing was tested");
    return;
  }
  constexpr double kDecibels = 0.01, kShare = 0.0005;
  const auto check = [&](const char* set, int64_t scale, double psnr, double ssim) {
    CAPTURE(set, scale);
    const Quality found = bicubic_quality(folder / set, scale);
    CHECK(found.psnr == Approx(psnr).margin(kDecibels));
    CHECK(found.ssim == Approx(ssim).margin(kShare));
  };
  check("set5", 2, 33.661, 0.9299);
  check("set5", 3, 30.392, 0.8682);
  check("set5", 4, 28.421, 0.8104);
  check("set14", 2, 30.232, 0.8687);
  check("set14", 3, 27.541, 0.7736);
  check("set14", 4, 26.000, 0.7019);
}

TEST_CASE("T91 and Set5 are read as the task wants them, and its metrics give the figures of bicubic") {
  if (test::real_data().empty() || !fs::is_directory(test::real_data() / "super_resolution")) {
    WARN("no Set5 here: set GPUNN_DATA_DIR; nothing was tested");
    return;
  }
  PhotographSet settings;
  settings.scale = 3;
  settings.patch_size = 48;
  DataConfig config;
  config.learnt = "image";
  config.dataset = "photographs";
  config.kind = settings;
  config.path = test::real_data() / "super_resolution";
  const Dataset set = load_dataset(config);
  REQUIRE(set.test.rows() == 5);
  tasks::MetricTallies metrics(tasks::image_quality());
  for (std::size_t i = 0; i < set.test.singles.size(); ++i) {
    const Split& single = set.test.singles[i];
    const std::vector<float> targets = fields::numbers_in<float>(single.fields.at(kTargetField)), losses = {0};
    metrics.add({.dataset = set,
                 .first = static_cast<int64_t>(i),
                 .scores = targets,
                 .predictions = targets,
                 .losses = losses});
  }
  const Scores scores = metrics.scores({}, 1);
  CHECK(scores.value("bicubic_psnr") == Approx(30.392).margin(0.01));
  CHECK(scores.value("bicubic_ssim") == Approx(0.8682).margin(0.0005));
  CHECK(std::isinf(scores.value("psnr")));
  CHECK(scores.value("ssim") == Approx(1));
}
