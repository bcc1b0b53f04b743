#pragma once

#include <gpunn/optimizer_config.hpp>
#include <gpunn/stylize.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/images/planes.hpp"
#include "execution/steps/program_runner.hpp"
#include "optim/optimizer/optimizer_rows.hpp"
#include "program/layout.hpp"
#include "session/frozen_features.hpp"

namespace gpunn::style {

struct StyleWeights {
  double content = 1, style = 1, variation = 0;
};

// An image on a device whose pixels are trained, so that a frozen network sees the content of one picture and the style
// of another in it.
class ImageTrainer {
 public:
  ImageTrainer(std::unique_ptr<execution::Backend> backend, const tasks::FrozenFeatures& features);

  // What the image is compared with. Throws ConfigError, naming the layer, where a picture is too small for it.
  void set_style(const data::Planes& picture);
  void set_content(const data::Planes& picture);

  // Compiles the step for images of the content's size. Throws execution::OutOfMemory where it does not fit.
  void prepare(const OptimizerConfig& optimizer, const StyleWeights& weights, int64_t steps);

  // The optimizer begins anew from this image, which is of the content's size.
  void start_from(const data::Planes& image, double learning_rate);
  void run(int64_t steps);
  data::Planes image() const;
  StyleLosses losses() const;  // in front of the last step
  // Of the images in front of the steps since start_from(), that of the least loss; the start where no loss is finite.
  data::Planes best_image() const;
  StyleLosses best_losses() const;
  // The total in front of each step since start_from().
  std::vector<double> history(int64_t steps) const;

 private:
  data::Planes read_image(const char* variable) const;
  StyleLosses read_losses(const char* variable) const;
  void keep(const data::Planes& picture, const std::string& prefix, const std::vector<std::string>& layers,
            training::OfLayer of);
  graph::Graph step(const OptimizerConfig& optimizer, const StyleWeights& weights, int64_t steps) const;

  const tasks::FrozenFeatures& features_;
  execution::ProgramRunner runner_;
  std::map<std::string, Shape> targets_;  // by the names of their variables
  data::Planes size_;                     // of the content, without values
  training::ParameterLayout layout_;
  std::vector<training::OptimizerState> states_;
  bool started_ = false;
  std::unique_ptr<execution::RunnableProgram> program_;
};

}  // namespace gpunn::style
