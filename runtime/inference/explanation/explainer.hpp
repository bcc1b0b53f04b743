#pragma once

#include <gpunn/model.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "execution/steps/program_runner.hpp"
#include "inference/explanation/class_map.hpp"
#include "inference/forward_program.hpp"
#include "inference/forward_weights.hpp"

namespace gpunn::inference {

// Makes class activation maps of a model's images, one at a time: a forward pass in f32 with every batch norm as a
// separate op, and the gradient of a logit with respect to a layer. The first map opens a device. One thread at a time
// uses it.
class Explainer {
 public:
  using BackendOpener = std::function<std::unique_ptr<execution::Backend>(const Experiment&)>;

  // `weights` are as training left them. Where it has no parameters and buffers, `shared` has them on the device, and
  // outlives this.
  Explainer(const ForwardModel& model, Weights weights, const execution::Variables& shared, BackendOpener open_backend);

  // `scores` are the model's own for the rows of the input, as many each as it has classes.
  std::vector<Explanation> explain(const ArrayView& input, std::span<const float> scores,
                                   const ExplainOptions& options);

 private:
  // The program that explains one layer.
  struct LayerProgram {
    std::string layer;
    TensorType type;  // of what the layer gives
    int64_t logits = 0;
    execution::RunnableProgram program;
  };

  // Layers whose output has more than one row or column, in the model's order.
  const std::vector<std::string>& layers_with_places();
  std::string choose_layer(const std::string& wanted);
  void open();
  void prepare(const std::string& layer);
  LayerGradients gradients(std::span<const std::byte> image, int64_t class_index, int64_t classes);

  ForwardModel model_;
  Weights weights_;  // until they are on the device
  const execution::Variables& shared_;
  BackendOpener open_backend_;
  std::unique_ptr<execution::ProgramRunner> runner_;
  std::vector<std::string> layers_;
  std::optional<LayerProgram> current_;
};

}  // namespace gpunn::inference
