#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/stylize.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "common/files.hpp"
#include "data/images/image.hpp"
#include "data/synthetic/philox_source.hpp"
#include "inference/pictures/content_picture.hpp"
#include "inference/pictures/pictures.hpp"
#include "plugins/plugin.hpp"
#include "session/open_backend.hpp"
#include "style/image_trainer.hpp"

namespace gpunn {

namespace fs = std::filesystem;
using data::Planes;
using style::ImageTrainer;

namespace {

constexpr int64_t kMostSteps = 1'000'000;
constexpr int64_t kReports = 100;
constexpr int kMostRestarts = 3;
constexpr double kSlower = 0.1;  // what the learning rate is multiplied with at a restart

std::string size_text(const data::Image& image) {
  return std::to_string(image.width) + " by " + std::to_string(image.height);
}

Planes planes_of(const data::Image& image) {
  return inference::planes_of_bytes(image.values, image.channels, image.height, image.width);
}

Planes noise_like(const Planes& content, uint64_t seed) {
  Planes noise{content.channels, content.height, content.width};
  data::PhiloxSource random(seed, data::kStyleNoiseStream, 0);
  noise.values.resize(content.values.size());
  for (float& value : noise.values) value = static_cast<float>(random.uniform(0, 1));
  return noise;
}

void require_request(const StylizeRequest& r) {
  const auto refuse = [](const std::string& text) { throw Error(text, ExitCode::usage); };
  if (r.to.extension() != ".png") refuse("expected a file that ends in .png to write, found " + r.to.string());
  if (r.steps < 1 || r.steps > kMostSteps) refuse("the steps have to be between 1 and " + std::to_string(kMostSteps));
  if (r.optimizer != "lbfgs" && r.optimizer != "adam") {
    refuse("the optimizer is lbfgs or adam, found '" + r.optimizer + "'");
  }
  if (r.history < 1 || r.history > 100) refuse("the history has to be between 1 and 100 steps");
  if (r.size < 0 || r.style_size < 0 || std::max(r.size, r.style_size) > data::kMostSide) {
    refuse("a size has to be between 0 and " + std::to_string(data::kMostSide) + " pixels");
  }
  for (const double weight : {r.content_weight.value_or(1), r.style_weight.value_or(1), r.variation_weight}) {
    if (!std::isfinite(weight) || weight < 0) refuse("a weight has to be a number of at least 0");
  }
  if (r.precision == Precision::f16) refuse("pictures are painted in fp32, tf32 or bf16");
  if (r.learning_rate && !(*r.learning_rate > 0)) refuse("the learning rate has to be above 0");
}

OptimizerConfig optimizer_of(const StylizeRequest& request) {
  OptimizerConfig config;
  if (request.optimizer == "adam") {
    config.kind = Adam{};
  } else {
    config.kind = Lbfgs{.history = request.history};
  }
  return config;
}

std::unique_ptr<execution::Backend> open(const StylizeRequest& request) {
  Experiment experiment;
  experiment.backend = request.backend;
  experiment.device = request.device;
  experiment.threads = request.threads;
  experiment.precision = request.precision;
  const plugins::PluginRegistry registry(experiment.plugins);
  return training::open_backend(experiment, registry, experiment.backend);
}

// What a layer's statistics are of where it sees more than the picture.
void tell_small_style(const tasks::FrozenFeatures& features, const data::Image& style,
                      std::vector<std::string>& notes) {
  for (const std::string& layer : features.style) {
    const int64_t field = nn::receptive_field(features.network.model, layer);
    if (field <= std::min(style.height, style.width)) continue;
    notes.push_back("the style picture has " + size_text(style) + " pixels, less than the " + std::to_string(field) +
                    " that a value of " + layer + " depends on: its style is partly that of the border around it");
    return;
  }
}

// Runs the steps, and sees to losses that are not finite.
class Run {
 public:
  Run(ImageTrainer& trainer, const StylizeRequest& request, StylizedImage& done)
      : trainer_(trainer), request_(request), done_(done) {}

  Planes run(const Planes& start, const std::function<void(const StylizeReport&)>& report,
             const std::function<bool()>& stop, const std::function<void(int64_t, const Planes&)>& preview) {
    const auto begin = std::chrono::steady_clock::now();
    const double rate = request_.learning_rate.value_or(request_.optimizer == "adam" ? 0.02 : 1);
    const int64_t stride = std::max<int64_t>(1, request_.steps / kReports);
    LongWork work("stylizing " + request_.content.filename().string(), static_cast<uint64_t>(request_.steps));
    begin_at(start, rate);
    int64_t step = 0;
    while (step < request_.steps && !(stop && stop())) {
      const int64_t next = next_stop(step, stride);
      trainer_.run(next - step);
      since_start_ += next - step;
      step = next;
      work.reach(static_cast<uint64_t>(step));
      const StyleLosses losses = trainer_.losses();
      done_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (!std::isfinite(losses.total)) restart(step, rate);
      if (report) report({.step = step, .steps = request_.steps, .losses = losses, .seconds = done_.seconds});
      if (request_.preview_every > 0 && step % request_.preview_every == 0 && step < request_.steps) {
        preview(step, trainer_.image());
      }
    }
    done_.steps = step;
    return finish();
  }

 private:
  int64_t next_stop(int64_t step, int64_t stride) const {
    int64_t next = std::min(request_.steps, step - step % stride + stride);
    if (request_.preview_every > 0) {
      next = std::min(next, step - step % request_.preview_every + request_.preview_every);
    }
    return step == 0 ? 1 : next;  // the first tells the loss of the start
  }

  void begin_at(const Planes& image, double rate) {
    trainer_.start_from(image, rate);
    since_start_ = 0;
  }

  void keep_history() {
    const std::vector<double> steps = trainer_.history(since_start_);
    done_.history.insert(done_.history.end(), steps.begin(), steps.end());
  }

  void restart(int64_t step, double rate) {
    if (restarts_ == kMostRestarts) {
      throw Error("the loss is NaN or infinite at step " + std::to_string(step) + " after " +
                      std::to_string(restarts_) + " restarts, each with a tenth of the learning rate; choose smaller " +
                      "weights, or the optimizer adam",
                  ExitCode::diverged);
    }
    ++restarts_;
    const double slower = rate * std::pow(kSlower, restarts_);
    done_.notes.push_back("the loss was NaN or infinite at step " + std::to_string(step) +
                          ": began anew from the best image, with a learning rate of " + short_text(slower));
    keep_history();
    begin_at(trainer_.best_image(), slower);
  }

  static std::string short_text(double number) {
    std::string text = std::to_string(number);
    while (text.ends_with('0')) text.pop_back();
    return text;
  }

  // L-BFGS takes steps without a line search: now and then one is far too long, and the next one corrects it. The loss
  // of the last image is known in front of one more step.
  Planes finish() {
    keep_history();
    trainer_.run(1);
    done_.last = trainer_.best_losses();
    return trainer_.best_image();
  }

  ImageTrainer& trainer_;
  const StylizeRequest& request_;
  StylizedImage& done_;
  int64_t since_start_ = 0;  // steps
  int restarts_ = 0;
};

}  // namespace

StylizedImage stylize(const StylizeRequest& request, const std::function<void(const StylizeReport&)>& report,
                      const std::function<bool()>& stop) {
  require_request(request);
  require_writable(request.to, {request.content, request.style});
  const inference::ContentPicture read = inference::read_content(request.content, request.size);
  const Planes& content = read.colours;
  const int64_t longer = std::max(content.height, content.width);
  const data::Image style_picture =
      data::read_colours(request.style, request.style_size > 0 ? request.style_size : longer);
  const tasks::FrozenFeatures features = training::load_frozen({.network = request.features,
                                                                .weights = request.weights,
                                                                .colours = request.colours,
                                                                .content = request.content_layers,
                                                                .style = request.style_layers,
                                                                .seed = request.seed,
                                                                .precision = request.precision});
  StylizedImage done;
  done.to = request.to;
  done.height = content.height;
  done.width = content.width;
  done.notes = features.notes;
  for (const std::string& note : read.notes) done.notes.push_back(request.content.string() + ": " + note);
  tell_small_style(features, style_picture, done.notes);

  ImageTrainer trainer(open(request), features);
  trainer.set_style(planes_of(style_picture));
  trainer.set_content(content);
  trainer.prepare(optimizer_of(request),
                  {.content = request.content_weight.value_or(features.content_weight),
                   .style = request.style_weight.value_or(features.style_weight),
                   .variation = request.variation_weight},
                  request.steps);

  const auto picture = [&](const Planes& image) {
    if (!request.original_colours) return inference::picture_like(read.like, image);
    return inference::picture_like(read.like, inference::join_colours(inference::split_colours(image).luma,
                                                                      inference::split_colours(content).colours));
  };
  const auto preview = [&](int64_t step, const Planes& image) {
    fs::path file = request.to;
    file.replace_extension(".step" + std::to_string(step) + ".png");
    inference::write_picture(file, picture(image));
  };
  const Planes start = request.from_noise ? noise_like(content, request.seed) : content;
  bool first = true;
  const auto told = [&](const StylizeReport& one) {
    if (std::exchange(first, false)) done.first = one.losses;
    if (report) report(one);
  };
  const Planes result = Run(trainer, request, done).run(start, told, stop, preview);
  inference::write_picture(request.to, picture(result));
  return done;
}

}  // namespace gpunn
