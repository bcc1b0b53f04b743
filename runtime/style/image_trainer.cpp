#include "style/image_trainer.hpp"

#include <gpunn/ops.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "compiler/autodiff.hpp"
#include "program/optimizer_ops.hpp"
#include "program/variable_access.hpp"
#include "session/memory_check.hpp"
#include "tasks/style/losses.hpp"

namespace gpunn::style {

using data::Planes;
using graph::Expressions;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

constexpr const char* kImage = "image";
constexpr const char* kGradient = "image.gradient";
constexpr const char* kRate = "learning_rate";
constexpr const char* kStep = "step";
constexpr const char* kLosses = "losses";  // total, content, style and variation, weighted
constexpr const char* kHistory = "loss_history";
constexpr const char* kBest = "best_image";  // that of the least loss
constexpr const char* kBestLosses = "best_losses";

Shape shape_of(const Planes& image) { return {1, image.channels, image.height, image.width}; }

ValueId as_they_are(Expressions& e, ValueId features) { return e.scaled(features, 1); }

}  // namespace

ImageTrainer::ImageTrainer(std::unique_ptr<execution::Backend> backend, const tasks::FrozenFeatures& features)
    : features_(features), runner_(std::move(backend)) {
  training::upload(runner_, features.network.constants);
}

void ImageTrainer::keep(const Planes& picture, const std::string& prefix, const std::vector<std::string>& layers,
                        training::OfLayer of) {
  std::vector<nn::Constant> seen = training::seen_in(runner_, features_.network, picture, layers, of);
  for (nn::Constant& one : seen) {
    one.name.insert(0, prefix + ".");
    targets_[one.name] = one.shape;
  }
  training::upload(runner_, seen);
}

void ImageTrainer::set_style(const Planes& picture) { keep(picture, "style", features_.style, tasks::gram_matrix); }

void ImageTrainer::set_content(const Planes& picture) {
  size_ = {picture.channels, picture.height, picture.width};
  keep(picture, "content", features_.content, as_they_are);
}

Graph ImageTrainer::step(const OptimizerConfig& optimizer, const StyleWeights& weights, int64_t steps) const {
  Graph g;
  const TensorType scalar{DType::f32, {}};
  const ValueId counter = g.add_value(kStep, {DType::i64, {}}, Storage::state);
  const ValueId flat = g.add_value(kImage, layout_.type(), Storage::parameters);
  const ValueId gradient = g.add_value(kGradient, layout_.type(), Storage::gradients);
  const ValueId image = training::add_parameter_views(g, layout_, flat).front();
  std::vector<std::string> compared_at = features_.content;
  compared_at.insert(compared_at.end(), features_.style.begin(), features_.style.end());
  const std::map<std::string, ValueId> seen = nn::FrozenLayers(g, features_.network).look_at(image, compared_at);

  Expressions e(g, "loss");
  const auto compared = [&](const std::string& prefix, const std::vector<std::string>& layers, training::OfLayer of,
                            double weight) {
    ValueId sum = e.constant(0, {1});
    for (const std::string& layer : layers) {
      const std::string name = prefix + "." + layer;
      const ValueId target = g.add_value(name, {DType::f32, targets_.at(name)}, Storage::data);
      sum = e.add(sum, tasks::mean_square(e, of(e, seen.at(layer)), target));
    }
    return e.scaled(sum, weight);
  };
  const ValueId content = compared("content", features_.content, as_they_are,
                                   weights.content / static_cast<double>(features_.content.size()));
  const ValueId style = compared("style", features_.style, tasks::gram_matrix, weights.style);
  const ValueId variation = e.scaled(tasks::total_variation(e, image), weights.variation);
  const ValueId total = e.view(e.add(e.add(content, style), variation), {});

  const ValueId found = compiler::add_gradients(g, total, {image}).front();
  g.add_into(GPUNN_OP_COPY, kGradient, {}, {found},
             {g.add_view("image.gradient.pixels", gradient, g.value(image).type)});
  const ValueId kept = g.add_value(kLosses, {DType::f32, {4}}, Storage::state);
  int64_t place = 0;
  for (const ValueId loss : {total, content, style, variation}) {
    const int64_t bytes = place++ * static_cast<int64_t>(sizeof(float));
    g.add_into(GPUNN_OP_COPY, kLosses, {}, {e.view(loss, {1})},
               {g.add_view("losses.one", kept, {DType::f32, {1}}, bytes)});
  }
  g.add(GPUNN_OP_TABLE_STORE, kHistory, {},
        {g.add_value(kHistory, {DType::f32, {steps}}, Storage::state), counter, total});

  const ValueId best = g.add_value(kBest, layout_.type(), Storage::state);
  const ValueId best_losses = g.add_value(kBestLosses, {DType::f32, {4}}, Storage::state);
  const ValueId better = e.less(e.view(total, {1}), g.add_view("best_losses.total", best_losses, {DType::f32, {1}}));
  g.add_into(GPUNN_OP_SELECT, kBest, {}, {better, flat, best}, {best});
  g.add_into(GPUNN_OP_SELECT, kBestLosses, {}, {better, kept, best_losses}, {best_losses});

  training::add_optimizer(
      g, optimizer, layout_,
      {.parameters = flat, .gradients = gradient, .rate = g.add_value(kRate, scalar, Storage::state), .step = counter});
  g.add(GPUNN_OP_ADVANCE, kStep,
        graph::Attributes::of(gpunn_advance_attrs{.struct_size = 0, .reserved = 0, .increment = 1}), {counter});
  return g;
}

void ImageTrainer::prepare(const OptimizerConfig& optimizer, const StyleWeights& weights, int64_t steps) {
  const gpunn_device_info device = runner_.backend().info();
  layout_ = training::lay_out({{.name = kImage, .shape = shape_of(size_)}}, device.alignment);
  states_ = training::optimizer_states(optimizer);
  program_ = std::make_unique<execution::RunnableProgram>(runner_.compile_fastest(step(optimizer, weights, steps + 1)));
  uint64_t arrays = 3;  // the image, its gradient and the best image
  for (const training::OptimizerState& state : states_) arrays += static_cast<uint64_t>(state.arrays());
  training::require_memory("an image of " + std::to_string(size_.width) + " by " + std::to_string(size_.height) +
                               " pixels (a smaller --size or --history takes less)",
                           {.arena = program_->compiled.plan.arena_bytes,
                            .persistent = arrays * layout_.type().bytes(),
                            .data = runner_.variables().bytes(Storage::data)},
                           training::with_host_limits(device), 1, {});
  runner_.ready(*program_);
}

void ImageTrainer::start_from(const Planes& image, double learning_rate) {
  execution::Variables& variables = runner_.variables();
  runner_.ready(*program_);
  std::vector<float> flat(static_cast<std::size_t>(layout_.total), 0.0F);
  std::memcpy(flat.data(), image.values.data(), image.values.size() * sizeof(float));
  variables.write(kImage, training::bytes_of(flat));
  variables.write(kBest, training::bytes_of(flat));
  variables.write(kBestLosses, training::bytes_of(std::vector<float>(4, std::numeric_limits<float>::infinity())));
  for (const training::OptimizerState& state : states_) {
    if (!started_) break;  // they are zeros
    variables.write(state.name, std::vector<std::byte>(variables.type(state.name).bytes()));
  }
  started_ = true;
  training::write_scalar<int64_t>(variables, kStep, 0);
  training::write_scalar(variables, kRate, static_cast<float>(learning_rate));
}

void ImageTrainer::run(int64_t steps) { runner_.ready(*program_).run(steps); }

Planes ImageTrainer::image() const { return read_image(kImage); }

Planes ImageTrainer::best_image() const { return read_image(kBest); }

Planes ImageTrainer::read_image(const char* variable) const {
  Planes image = size_;
  image.values = training::values_of<float>(runner_.variables().read(variable));
  image.values.resize(static_cast<std::size_t>(image.channels) * image.plane());
  return image;
}

StyleLosses ImageTrainer::losses() const { return read_losses(kLosses); }

StyleLosses ImageTrainer::best_losses() const { return read_losses(kBestLosses); }

StyleLosses ImageTrainer::read_losses(const char* variable) const {
  const std::vector<float> losses = training::values_of<float>(runner_.variables().read(variable));
  return {.total = static_cast<double>(losses[0]),
          .content = static_cast<double>(losses[1]),
          .style = static_cast<double>(losses[2]),
          .variation = static_cast<double>(losses[3])};
}

std::vector<double> ImageTrainer::history(int64_t steps) const {
  const std::vector<float> values = training::values_of<float>(runner_.variables().read(kHistory));
  return {values.begin(), values.begin() + steps};
}

}  // namespace gpunn::style
