#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/export.h>
#include <gpunn/model.hpp>
#include <gpunn/model_info.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gpunn {

// A tensor of a network: f32.
struct NetworkTensor {
  std::string name;  // "conv1.weight", "bn1.running_mean"
  std::string layer;
  Shape shape;
  bool buffer = false;     // changed by training without a gradient, as running statistics
  bool trainable = false;  // a parameter that training.freeze does not match
};

// A network with its weights in host memory, and all that a training of it knows: what an experiment describes, built
// for samples of one type. It begins with the weights that a training of the experiment begins with. One thread at a
// time may use it.
class GPUNN_API Network {
 public:
  // With the first weights of experiment.training.seed. `info` has the type of a sample and what it is normalised with;
  // where it names no outputs and the last layer gives [rows, outputs], these are called by their numbers. Throws
  // ConfigError where the model does not take such samples.
  Network(Experiment experiment, ModelInfo info);
  // Of a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file.
  static Network load(const std::filesystem::path& path, const std::vector<Override>& overrides = {});

  Network(const Network&);
  Network(Network&&) noexcept;
  Network& operator=(const Network&);
  Network& operator=(Network&&) noexcept;
  ~Network();

  const Experiment& experiment() const;
  const ModelInfo& info() const;
  // Other settings for the same model. Other kinds of optimizers begin without the states of the last; weights stay.
  // Throws Error(usage) where the model's tensors would be others.
  void set(Experiment experiment, ModelInfo info);

  const std::vector<NetworkTensor>& tensors() const;  // parameters in the order of the layers, then buffers
  // Of the tensor as it is evaluated: of parameters their running average, where training.ema keeps one. Valid until
  // the network changes. Throws Error(usage) for an unknown name.
  std::span<const float> read(const std::string& name) const;
  // Throws Error(usage) for an unknown name or another number of values.
  void write(const std::string& name, std::span<const float> values);
  // The same tensors from a checkpoint, run folder or .safetensors file, with `names` as init_from.names. Returns what
  // was taken, in words. Throws Error(usage) where nothing fits, or where `strict` and a tensor is missing, of another
  // shape or not of this model.
  std::string read_file(const std::filesystem::path& file, const std::filesystem::path& names = {}, bool strict = true);

  int64_t steps() const;   // done by trainings so far
  int64_t epochs() const;  // likewise, whole ones
  // Forgets what trainings left besides the weights: the next begins at the first step.
  void forget_training();

  // Writes a checkpoint, which Network::load, Model::load, `gpunn eval` and `gpunn resume` read; or, where the name
  // ends in .safetensors, the tensors alone.
  void save(const std::filesystem::path& file) const;

  // Trains for experiment().epochs more epochs. A later call goes on where the last one ended, with the states of the
  // optimizer, and from the start of an epoch. Of a Dataset `kArrays`. Nothing is written unless options.run_folder
  // names a folder. If it throws, the network is as at the last checkpoint: the end of an epoch, or of
  // checkpoint.every_steps.
  RunResult train(Dataset dataset, const RunOptions& options = {});
  // The test rows of a data set, of which the training rows are not looked at.
  EvalReport evaluate(Dataset dataset, TrainingListener* listener = nullptr) const;

  // To be called from any thread, with the weights of this moment.
  Model model(const ModelOptions& options = {}) const;

 private:
  class Impl;
  explicit Network(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpunn
