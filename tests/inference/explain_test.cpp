// Class activation maps: against gradients by finite differences in float64, and of models of every kind.
#include <gpunn/error.hpp>
#include <gpunn/explain.hpp>
#include <gpunn/network.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <numeric>
#include <thread>

#include "catch.hpp"
#include "data/images/image.hpp"
#include "inference/explanation/class_map.hpp"
#include "inference/models.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using inference::LayerGradients;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kSide = 14;
constexpr double kStep = 1e-5;  // of finite differences

// `more` follows the layers. Batch norms and the layer in front of one are as no folded model has them.
Network network_of(const std::string& layers, int64_t classes, const std::string& more = "") {
  ModelInfo info;
  info.fields.input().type = {DType::u8, {1, kSide, kSide}};
  info.fields.input().mean = {0.3};
  info.fields.input().stddev = {0.4};
  for (int64_t i = 0; i < classes; ++i) info.fields.target().names.push_back("class_" + std::to_string(i));
  Network network(parse_experiment("name: explained\nmodel: {layers: [" + layers +
                                       "]}\ndata: {dataset: arrays}\noptimizer: {type: sgd}\nbackend: cpu\n" + more,
                                   "explained.yaml"),
                  info);
  uint32_t seed = 7;
  for (const NetworkTensor& tensor : network.tensors()) {
    if (tensor.name.find("norm") == std::string::npos) continue;
    std::vector<float> values(static_cast<std::size_t>(element_count(tensor.shape)));
    for (float& value : values) {
      seed = seed * 1664525U + 1013904223U;
      value = 0.5F + static_cast<float>(seed >> 8U) / static_cast<float>(1U << 24U);
    }
    network.write(tensor.name, values);
  }
  return network;
}

constexpr const char* kTwoConvolutions =
    "conv2d: {name: first, filters: 4, kernel: 3, stride: 2}, tanh: {name: bend}, "
    "conv2d: {name: second, filters: 3, kernel: 2}, batch_norm: {name: norm}, sigmoid: {name: last}, "
    "flatten: {name: line}, linear: {units: 5, name: output}";

using Doubles = std::vector<double>;

// The same network in float64, from the convolution `second` on.
class Head {
 public:
  explicit Head(const Network& network)
      : gamma_(read(network, "norm.weight")),
        beta_(read(network, "norm.bias")),
        mean_(read(network, "norm.running_mean")),
        variance_(read(network, "norm.running_var")),
        weight_(read(network, "output.weight")),
        bias_(read(network, "output.bias")) {}

  static Doubles read(const Network& network, const std::string& name) {
    const std::span<const float> values = network.read(name);
    return {values.begin(), values.end()};
  }

  Doubles last(const Doubles& second) const {
    Doubles y;
    const std::size_t plane = second.size() / gamma_.size();
    for (std::size_t i = 0; i < second.size(); ++i) {
      const std::size_t c = i / plane;
      const double z = (second[i] - mean_[c]) / std::sqrt(variance_[c] + 1e-5) * gamma_[c] + beta_[c];
      y.push_back(1 / (1 + std::exp(-z)));
    }
    return y;
  }

  double logit(const Doubles& last, std::size_t which) const {
    double sum = bias_[which];
    for (std::size_t i = 0; i < last.size(); ++i) sum += weight_[which * last.size() + i] * last[i];
    return sum;
  }

 private:
  Doubles gamma_, beta_, mean_, variance_, weight_, bias_;
};

// [channels, side, side] through filters [count, channels, kernel, kernel], without padding.
Doubles convolve(const Doubles& x, std::size_t channels, std::size_t side, const Doubles& filters, const Doubles& bias,
                 std::size_t kernel, std::size_t stride) {
  const std::size_t out = (side - kernel) / stride + 1;
  Doubles y;
  for (std::size_t f = 0; f < bias.size(); ++f) {
    for (std::size_t row = 0; row < out; ++row) {
      for (std::size_t column = 0; column < out; ++column) {
        double sum = bias[f];
        for (std::size_t c = 0; c < channels; ++c) {
          for (std::size_t i = 0; i < kernel * kernel; ++i) {
            const std::size_t at = (row * stride + i / kernel) * side + column * stride + i % kernel;
            sum += filters[(f * channels + c) * kernel * kernel + i] * x[c * side * side + at];
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

Doubles second_layer(const Network& network, const std::byte* image) {
  Doubles x;
  for (int64_t i = 0; i < kSide * kSide; ++i) x.push_back((std::to_integer<int>(image[i]) / 255.0 - 0.3) / 0.4);
  Doubles first = convolve(x, 1, kSide, Head::read(network, "first.weight"), Head::read(network, "first.bias"), 3, 2);
  for (double& value : first) value = std::tanh(value);
  return convolve(first, 4, 6, Head::read(network, "second.weight"), Head::read(network, "second.bias"), 2, 1);
}

template <class Function>
Doubles differences(const Doubles& x, const Function& f) {
  Doubles gradient;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Doubles above = x, below = x;
    above[i] += kStep;
    below[i] -= kStep;
    gradient.push_back((f(above) - f(below)) / (2 * kStep));
  }
  return gradient;
}

// Of the formulas of the papers, without enlarging: [side, side].
Doubles coarse_map(const Doubles& activations, const Doubles& gradients, std::size_t channels, bool plus_plus) {
  const std::size_t plane = activations.size() / channels;
  Doubles map(plane, 0.0);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto a = std::span(activations).subspan(c * plane, plane), g = std::span(gradients).subspan(c * plane, plane);
    double weight = 0;
    for (std::size_t i = 0; i < plane; ++i) {
      if (!plus_plus) {
        weight += g[i] / static_cast<double>(plane);
      } else if (g[i] > 0) {
        const double total = std::accumulate(a.begin(), a.end(), 0.0);
        weight += g[i] * g[i] * g[i] / (2 * g[i] * g[i] + total * g[i] * g[i] * g[i] + 1e-6);
      }
    }
    for (std::size_t i = 0; i < plane; ++i) map[i] += weight * a[i];
  }
  for (double& value : map) value = std::max(0.0, value);
  return map;
}

std::vector<float> in_floats(const Doubles& values) { return {values.begin(), values.end()}; }

std::vector<float> map_of(const Network& network, const Samples& samples, const ExplainOptions& options) {
  return network.model().explain(samples.view(), options).front().map;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(static_cast<double>(a[i] - b[i])));
  return most;
}

void write_png(const fs::path& file, int64_t height, int64_t width) {
  data::Image image{height, width, 1, {}};
  for (int64_t i = 0; i < height * width; ++i) image.values.push_back(static_cast<uint8_t>(i * 37 % 251));
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << data::encode_png(image);
}

}  // namespace

TEST_CASE("a map by hand: weighted channels, no negatives, stretched, enlarged from the pixels' centres") {
  // The channels weigh 1 and -0.5; their sum is 0.5, -1, 3, 1, so that the map is 0.5, 0, 3, 1.
  const LayerGradients layer{2, 2, 2, {1, 0, 3, 2, 1, 2, 0, 2}, {1, 1, 1, 1, 0, -2, 1, -1}};
  CHECK(inference::channel_weights(layer, ExplainMethod::gradcam) == std::vector<float>{1, -0.5F});
  const std::vector<float> map = inference::class_activation_map(layer, ExplainMethod::gradcam, 4, 2);
  const std::vector<float> expected = {
      0.5F / 3, 0, (0.5F * 0.75F + 3 * 0.25F) / 3, 0.25F / 3, (0.5F * 0.25F + 3 * 0.75F) / 3, 0.75F / 3, 1, 1.0F / 3};
  CHECK(largest_difference(map, expected) < 1e-6);

  // Of the second channel only the gradient of 1 is positive: 1 / (2 + 5 + 1e-6).
  const std::vector<float> plus = inference::channel_weights(layer, ExplainMethod::gradcam_plus_plus);
  CHECK(plus[0] == Approx(4.0 / (2 + 6 + 1e-6)));
  CHECK(plus[1] == Approx(1.0 / (2 + 5 + 1e-6)));
}

TEST_CASE("a map without anything that speaks for the class is zero") {
  const LayerGradients layer{1, 2, 2, {1, 2, 3, 4}, {-1, -1, -1, -1}};
  for (const ExplainMethod method : {ExplainMethod::gradcam, ExplainMethod::gradcam_plus_plus}) {
    CHECK(inference::class_activation_map(layer, method, 3, 3) == std::vector<float>(9, 0.0F));
  }
}

TEST_CASE("maps are those of gradients by finite differences in float64, also in front of a folded batch norm") {
  const Network network = network_of(kTwoConvolutions, 5);
  const Model model = network.model();
  const Head head(network);
  Samples samples(model, 2);
  samples.draw(3);
  const std::vector<float> logits = logits_of(model, samples);
  const std::string layer = GENERATE("second", "last", "");
  const bool plus_plus = GENERATE(false, true);
  const std::optional<int64_t> wanted = GENERATE(std::optional<int64_t>(), std::optional<int64_t>(4));
  CAPTURE(layer, plus_plus, wanted.value_or(-1));
  const std::vector<Explanation> found =
      model.explain(samples.view(), {.class_index = wanted,
                                     .layer = layer,
                                     .method = plus_plus ? ExplainMethod::gradcam_plus_plus : ExplainMethod::gradcam});
  REQUIRE(found.size() == 2);
  for (std::size_t row = 0; row < 2; ++row) {
    const auto of_row = std::span(logits).subspan(row * 5, 5);
    const Explanation& one = found[row];
    CHECK(one.class_index == wanted.value_or(std::ranges::max_element(of_row) - of_row.begin()));
    CHECK(one.class_name == "class_" + std::to_string(one.class_index));
    CHECK(one.layer == (layer.empty() ? "last" : layer));
    double sum = 0;
    for (const float value : of_row) sum += std::exp(static_cast<double>(value));
    const auto which = static_cast<std::size_t>(one.class_index);
    CHECK(one.is_probability);
    CHECK(one.score == Approx(std::exp(static_cast<double>(of_row[which])) / sum).epsilon(1e-4));

    const Doubles second = second_layer(network, samples.bytes.data() + row * kSide * kSide);
    const Doubles last = head.last(second);
    CHECK(head.logit(last, which) == Approx(of_row[which]).epsilon(1e-4));
    const bool before_norm = layer == "second";
    const Doubles& activations = before_norm ? second : last;
    const Doubles gradients =
        differences(activations, [&](const Doubles& a) { return head.logit(before_norm ? head.last(a) : a, which); });
    const Doubles coarse = coarse_map(activations, gradients, 3, plus_plus);
    std::vector<float> expected = inference::resize_bilinear(in_floats(coarse), 5, 5, kSide, kSide);
    const auto [low, high] = std::ranges::minmax(expected);
    if (plus_plus && !before_norm) CHECK(high > low);  // positive weights and activations
    for (float& value : expected) value = high > low ? (value - low) / (high - low) : 0;
    CHECK(largest_difference(one.map, expected) < 1e-4);
  }
}

TEST_CASE("a model that ends in softmax is explained by what it makes the probabilities of") {
  Samples samples(network_of(kTwoConvolutions, 5).model(), 1);
  samples.draw(11);
  const ExplainOptions options{.class_index = 2, .method = ExplainMethod::gradcam_plus_plus};
  const std::vector<float> plain = map_of(network_of(kTwoConvolutions, 5), samples, options);
  const Network ended =
      network_of(std::string(kTwoConvolutions) + ", softmax", 5, "loss: {type: mean_squared_error}\n");
  CHECK(*std::ranges::max_element(plain) > 0.9F);
  CHECK(map_of(ended, samples, options) == plain);
}

TEST_CASE("a model in bf16 is explained in fp32") {
  const ExplainOptions options{.class_index = 2, .method = ExplainMethod::gradcam_plus_plus};
  Samples samples(network_of(kTwoConvolutions, 5).model(), 1);
  samples.draw(11);
  const Network half = network_of(kTwoConvolutions, 5, "training: {precision: bf16}\n");
  CHECK(logits_of(half.model(), samples) != logits_of(network_of(kTwoConvolutions, 5).model(), samples));
  CHECK(map_of(half, samples, options) == map_of(network_of(kTwoConvolutions, 5), samples, options));
}

TEST_CASE("threads may explain different layers while others run the model") {
  const Model model = network_of(kTwoConvolutions, 5).model();
  Samples samples(model, 2);
  samples.draw(21);
  const std::vector<float> logits = logits_of(model, samples);
  const std::array<std::string, 2> layers = {"bend", "second"};
  std::array<std::vector<float>, 2> expected;
  for (std::size_t i = 0; i < 2; ++i) expected[i] = model.explain(samples.view(), {.layer = layers[i]}).back().map;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10; ++round) {
        const bool alike = t < 2 ? model.explain(samples.view(), {.layer = layers[t]}).back().map == expected[t]
                                 : logits_of(model, samples) == logits;
        if (!alike) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("of one output for two classes the other class is its negative") {
  const std::string layers =
      "conv2d: {name: first, filters: 4, kernel: 3, stride: 2}, tanh: {name: bend}, flatten, linear: {units: 1, name: "
      "output}";
  Network network = network_of(layers, 2, "loss: {type: binary_cross_entropy}\n");
  Samples samples(network.model(), 1);
  samples.draw(5);
  const std::vector<float> second = map_of(network, samples, {.class_index = 1});
  const std::vector<float> first = map_of(network, samples, {.class_index = 0});
  const std::span<const float> weights = network.read("output.weight");
  std::vector<float> turned;
  for (const float weight : weights) turned.push_back(-weight);
  network.write("output.weight", turned);
  CHECK(map_of(network, samples, {.class_index = 0}) == second);
  CHECK(map_of(network, samples, {.class_index = 1}) == first);
  CHECK(first != second);
}

TEST_CASE("what can't be explained is told with what can") {
  const Model model = network_of(kTwoConvolutions, 5).model();
  Samples samples(model, 1);
  const auto told = [&](const ExplainOptions& options) {
    return message_of([&] { static_cast<void>(model.explain(samples.view(), options)); });
  };
  const std::string unknown = told({.layer = "secnd"});
  CHECK(unknown.find("no layer 'secnd'; layers with rows and columns: first, bend, second, norm, last; did you mean "
                     "'second'?") != std::string::npos);
  CHECK(told({.layer = "line"}).find("'line' has no rows and columns") != std::string::npos);
  CHECK(told({.class_index = 5}).find("no class 5; classes count from 0 to 4") != std::string::npos);
  CHECK(told({.class_index = -1}).find("no class -1") != std::string::npos);
  CHECK(told({.class_index = 4}) == "(no error)");  // after errors it still works

  CHECK(find_class(model.info(), "class_3") == 3);
  CHECK(find_class(model.info(), "3") == 3);
  CHECK(message_of([&] { find_class(model.info(), "clas_3"); }).find("did you mean 'class_3'?") != std::string::npos);
  CHECK(message_of([&] { find_class(model.info(), "7"); }).find("0 to 4: class_0, class_1") != std::string::npos);
  CHECK(message_of([] { explain_method_named("grad_cam"); }).find("did you mean 'gradcam'?") != std::string::npos);

  const Model flat = network_of("flatten, linear: {units: 5}", 5).model();
  CHECK(message_of([&] { static_cast<void>(flat.explain(samples.view())); }).find("nothing to map") !=
        std::string::npos);
}

TEST_CASE("files are explained into one picture, or into a folder of them") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "model.h5", images = folder.path() / "images";
  network_of(kTwoConvolutions, 5).save(file);
  write_png(images / "a.png", 20, 30);
  write_png(images / "b.png", kSide, kSide);
  const TrainedModel model{file, {}};
  const std::vector<ExplainedImage> one =
      explain(model, {.inputs = {images / "a.png"}, .class_text = "class_2", .overlay = folder.path() / "why.png"});
  REQUIRE(one.size() == 1);
  CHECK(one[0].explanation.class_index == 2);
  const data::Image overlay = data::read_image_file(folder.path() / "why.png");
  CHECK(overlay.height == 224);  // 16 times as large
  CHECK(overlay.channels == 3);

  const fs::path maps = folder.path() / "maps";
  CHECK(explain(model, {.inputs = {images}, .heatmap = maps}).size() == 2);
  CHECK(data::read_image_file(maps / "b.png").width == 224);
  CHECK(message_of([&] {
          explain(model, {.inputs = {images}, .overlay = images});
        }).find("would replace an image that is read") != std::string::npos);
  CHECK(message_of([&] {
          explain(model, {.inputs = {images}, .overlay = maps, .heatmap = maps});
        }).find("would be written twice") != std::string::npos);
  CHECK(message_of([&] {
          explain(model, {.inputs = {images / "a.png"}, .overlay = folder.path() / "why.jpg"});
        }).find("ends in .png") != std::string::npos);
}

TEST_CASE("an overlay mixes the image and the colours of the map half and half") {
  Explanation explanation{.height = 224, .width = 224, .map = std::vector<float>(224 * 224, 0.0F)};
  explanation.map[0] = 1;
  std::vector<uint8_t> image(224 * 224, 100);
  const auto pixels = [](const std::string& png) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(png.data());
    return data::decode_image({bytes, png.size()}, "picture").values;
  };
  const std::vector<uint8_t> overlay = pixels(overlay_png(explanation, image));
  CHECK(std::vector<uint8_t>(overlay.begin(), overlay.begin() + 6) == std::vector<uint8_t>{176, 178, 132, 50, 50, 52});
  const std::vector<uint8_t> heatmap = pixels(heatmap_png(explanation));
  CHECK(std::vector<uint8_t>(heatmap.begin(), heatmap.begin() + 6) == std::vector<uint8_t>{252, 255, 164, 0, 0, 4});
  image.pop_back();
  CHECK_THROWS_AS(overlay_png(explanation, image), Error);
}
