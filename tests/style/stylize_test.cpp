// Pictures that are painted in a style: losses and results are PyTorch's on the same weights, and mistakes are told.
#include <gpunn/error.hpp>
#include <gpunn/stylize.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/images/image.hpp"
#include "storage/safetensors.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

constexpr int64_t kHeight = 20, kWidth = 24;

// Two pictures by formula.
std::string picture(int64_t kind, int64_t height = kHeight, int64_t width = kWidth) {
  std::string ppm = "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        ppm += static_cast<char>((y * (7 + 4 * kind) + x * (5 + 9 * kind) + c * 40 + x * y * (kind + 1) / 3) % 256);
      }
    }
  }
  return ppm;
}

// Weights of VGG-19's first two convolutions, by formula.
storage::Safetensors weights(float size = 0.02F) {
  storage::Safetensors file;
  int64_t place = 1;
  for (const auto& [name, channels] : {std::pair{"features.0", int64_t{3}}, {"features.2", int64_t{64}}}) {
    std::vector<float> values(static_cast<std::size_t>(64 * channels * 9));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + static_cast<double>(place))) * size;
    }
    file.tensors.push_back(storage::stored_floats(std::string(name) + ".weight", {64, channels, 3, 3}, values));
    file.tensors.push_back(storage::stored_floats(std::string(name) + ".bias", {64}, std::vector<float>(64, 0.0F)));
    ++place;
  }
  return file;
}

struct Paints {
  TemporaryFolder folder;
  StylizeRequest request;

  Paints() {
    request.content = folder.write("content.ppm", picture(0));
    request.style = folder.write("style.ppm", picture(1));
    request.to = folder / "painted.png";
    request.weights = folder / "vgg19.safetensors";
    storage::save_safetensors(request.weights, weights());
    request.size = 0;
    request.steps = 30;
    request.content_layers = {"relu1_2"};
    request.style_layers = {"relu1_1", "relu1_2"};
    request.content_weight = 2;
    request.style_weight = 3;
    request.variation_weight = 10;
    request.history = 50;
    request.backend = "cpu";
  }
};

}  // namespace

TEST_CASE("thirty steps of L-BFGS end where PyTorch's do") {
  Paints paints;
  const StylizedImage done = stylize(paints.request);
  REQUIRE(done.history.size() == 30);
  CHECK(done.height == kHeight);
  CHECK(done.width == kWidth);
  // PyTorch 2.15 in float64: torch.optim.LBFGS with a history of 50.
  CHECK(done.first.total == Approx(0.6155810450).epsilon(1e-5));
  CHECK(done.first.content == Approx(0).margin(1e-9));
  CHECK(done.first.style == Approx(0.0011099694).epsilon(1e-4));
  CHECK(done.first.variation == Approx(0.6144710756).epsilon(1e-5));
  CHECK(done.history[1] == Approx(0.5910198209).epsilon(1e-4));
  // Roundings grow on the way: of PyTorch's own steps in f32 and float64 these numbers differ by 2 %.
  CHECK(done.history[9] == Approx(0.0202345699).epsilon(0.02));
  CHECK(done.last.total == Approx(0.0073474776).epsilon(0.04));
  const data::Image image = data::read_image_file(done.to);
  CHECK(image.channels == 3);
  CHECK(image.width == kWidth);
}

TEST_CASE("thirty steps of Adam end where PyTorch's do") {
  Paints paints;
  paints.request.optimizer = "adam";
  const StylizedImage done = stylize(paints.request);
  // Compilers round otherwise: without optimisation the content's part, an eighth of the whole, is off by 1.3 %.
  CHECK(done.last.total == Approx(0.0160776854).epsilon(0.02));
  CHECK(done.last.style == Approx(0.0028783461).epsilon(0.03));
  CHECK(done.last.content == Approx(0.0020840349).epsilon(0.05));
}

TEST_CASE("a picture can be painted in bf16, with features in half precision") {
  Paints paints;
  paints.request.precision = Precision::bf16;
  const StylizedImage done = stylize(paints.request);
  CHECK(done.first.content == Approx(0).margin(1e-9));
  CHECK(done.first.style == Approx(0.0011099694).epsilon(0.05));
  CHECK(done.last.total == Approx(0.0073474776).epsilon(0.1));
  paints.request.precision = Precision::f16;
  CHECK_THROWS_WITH(stylize(paints.request), Contains("fp32, tf32 or bf16"));
}

TEST_CASE("the picture of the least loss is kept, not that of a last step that was too long") {
  Paints paints;
  paints.request.learning_rate = 40;  // of adam: each step throws the picture about
  paints.request.optimizer = "adam";
  paints.request.steps = 5;
  const StylizedImage done = stylize(paints.request);
  for (const double loss : done.history) CHECK(done.last.total <= loss * 1.000001);
}

TEST_CASE("the content's colours can be kept, and previews are written") {
  Paints paints;
  paints.request.steps = 8;
  paints.request.preview_every = 3;
  paints.request.original_colours = true;
  std::vector<int64_t> told;
  const StylizedImage done = stylize(paints.request, [&](const StylizeReport& report) { told.push_back(report.step); });
  CHECK(told == std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(std::filesystem::exists(paints.folder / "painted.step3.png"));
  CHECK(std::filesystem::exists(paints.folder / "painted.step6.png"));
  CHECK_FALSE(std::filesystem::exists(paints.folder / "painted.step8.png"));
  // A grey content stays grey.
  std::string grey = "P5 24 20 255\n";
  for (int i = 0; i < 480; ++i) grey += static_cast<char>(i * 7 % 200);
  paints.request.content = paints.folder.write("grey.pgm", grey);
  stylize(paints.request);
  const data::Image image = data::read_image_file(done.to);
  int off = 0;
  for (std::size_t i = 0; i < image.values.size(); i += 3) {
    off = std::max(off, std::abs(image.values[i] - image.values[i + 1]));
    off = std::max(off, std::abs(image.values[i] - image.values[i + 2]));
  }
  CHECK(off <= 1);
}

TEST_CASE("drawn filters need no file; the same seed paints the same picture, and a stop keeps what is there") {
  Paints paints;
  StylizeRequest& request = paints.request;
  request.features = "drawn";
  request.weights.clear();
  request.content_layers.clear();
  request.style_layers.clear();
  request.content_weight.reset();
  request.style_weight.reset();
  request.steps = 6;
  request.from_noise = true;
  request.size = 32;
  const StylizedImage done = stylize(request);
  CHECK(done.last.total < done.first.total);
  CHECK(done.width == 32);
  CHECK(done.height == 27);
  const data::Image first = data::read_image_file(done.to);
  stylize(request);
  CHECK(data::read_image_file(done.to).values == first.values);
  const StylizedImage stopped = stylize(request, {}, [asked = 0]() mutable { return ++asked > 3; });
  CHECK(stopped.steps == 3);
  CHECK(std::filesystem::exists(stopped.to));
}

TEST_CASE("a style picture that is smaller than a layer sees is told, one that vanishes in a layer is refused") {
  Paints paints;
  StylizeRequest& request = paints.request;
  request.features = "drawn";
  request.weights.clear();
  request.content_layers = {"relu1"};
  request.style_layers = {"relu3"};
  request.steps = 1;
  const StylizedImage done = stylize(request);
  REQUIRE(done.notes.size() == 1);
  CHECK_THAT(done.notes.front(), Contains("24 by 20") && Contains("relu3"));
  request.style = paints.folder.write("dot.ppm", picture(1, 1, 1));
  request.style_size = 1;
  CHECK_THROWS_WITH(stylize(request), Contains("pool"));
}

TEST_CASE("a loss that is not finite begins anew with smaller steps, and ends where that does not help") {
  Paints paints;
  paints.request.learning_rate = 1e11;  // the second step is far away from any picture
  paints.request.optimizer = "adam";
  const StylizedImage done = stylize(paints.request);
  CHECK(done.notes.size() >= 2);
  CHECK_THAT(done.notes.back(), Contains("began anew"));

  storage::save_safetensors(paints.request.weights, weights(1e20F));
  try {
    stylize(paints.request);
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::diverged);
    CHECK_THAT(error.what(), Contains("NaN or infinite at step"));
  }
}

TEST_CASE("what can't be painted is told") {
  Paints paints;
  StylizeRequest& request = paints.request;
  SECTION("layers that the weights do not reach") {
    request.style_layers = {"relu3_1"};
    CHECK_THROWS_WITH(stylize(request), Contains("no tensor 'conv2_1.weight' of f32[128, 64, 3, 3]"));
  }
  SECTION("the layers that the network is known for, as far as weights go") {
    request.style_layers.clear();
    request.content_layers.clear();
    request.steps = 1;
    const StylizedImage done = stylize(request);
    CHECK_THAT(done.notes.front(), Contains("has vgg19 up to pool1"));
  }
  SECTION("weights of another network") {
    storage::Safetensors other;
    other.tensors.push_back(storage::stored_floats("layer1.weight", {1}, std::vector<float>{1}));
    storage::save_safetensors(request.weights, other);
    CHECK_THROWS_WITH(stylize(request), Contains("torchvision's names") && Contains("layer1.weight"));
  }
  SECTION("no weights at all") {
    ::setenv("GPUNN_DATA_DIR", paints.folder.path().c_str(), 1);
    request.features = "squeezenet";
    request.weights.clear();
    CHECK_THROWS_WITH(stylize(request), Contains("squeezenet1_1*.safetensors") && Contains("drawn"));
    ::unsetenv("GPUNN_DATA_DIR");
  }
  SECTION("options") {
    request.to = paints.folder / "painted.jpg";
    CHECK_THROWS_WITH(stylize(request), Contains(".png"));
    request.to = paints.folder / "painted.png";
    request.optimizer = "sgd";
    CHECK_THROWS_WITH(stylize(request), Contains("lbfgs or adam"));
    request.optimizer = "lbfgs";
    request.style_weight = -1;
    CHECK_THROWS_WITH(stylize(request), Contains("at least 0"));
  }
  SECTION("a picture that is none") {
    request.style = paints.folder.write("broken.png", "not a picture");
    CHECK_THROWS(stylize(request));
  }
}
