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
  bool buffer = false;     // changed by training without a gradient, such as running statistics
  bool trainable = false;  // a parameter that training.freeze does not match
};

// A network with its weights in host memory, and the settings and state of its training. An experiment describes it; it
// is built for samples of one type. It starts with the same weights as a training of that experiment. Only one thread
// at a time may use it.
class GPUNN_API Network {
 public:
  // Starts with the first weights of experiment.training.seed. `info` has the type of a sample and its normalisation.
  // If it names no outputs and the last layer gives [rows, outputs], these are called by their numbers. Throws
  // ConfigError if the model does not accept such samples.
  Network(Experiment experiment, ModelInfo info);
  // Reads a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file.
  static Network load(const std::filesystem::path& path, const std::vector<Override>& overrides = {});

  Network(const Network&);
  Network(Network&&) noexcept;
  Network& operator=(const Network&);
  Network& operator=(Network&&) noexcept;
  ~Network();

  const Experiment& experiment() const;
  const ModelInfo& info() const;
  // Replaces the settings; the model must be the same. Weights stay. An optimizer of another type starts without
  // states. Throws Error(usage) if the model's tensors would change.
  void set(Experiment experiment, ModelInfo info);

  const std::vector<NetworkTensor>& tensors() const;  // parameters in the order of the layers, then buffers
  // The values that an evaluation uses: of parameters their running average, if training.ema keeps one. Valid until the
  // network changes. Throws Error(usage) for an unknown name.
  std::span<const float> read(const std::string& name) const;
  // Throws Error(usage) for an unknown name or a wrong number of values.
  void write(const std::string& name, std::span<const float> values);
  // Reads the tensors from a checkpoint, run folder, .onnx or .safetensors file, with `names` as init_from.names. Takes
  // the preparation of samples with them, if the file has it: normalisation and the scale of targets. Returns sentences
  // that say what was read. Throws Error(usage) if nothing fits; with `strict` also if a tensor is missing, has another
  // shape, or is not one of this model's.
  std::string read_file(const std::filesystem::path& file, const std::filesystem::path& names = {}, bool strict = true);

  // The preparation of samples that belongs to the weights, as text for another network's take_preparation(), and
  // whether there is one: the network was trained, or its samples are normalised.
  std::string preparation() const;
  bool is_prepared() const;
  // Returns a sentence that says what was taken. Throws Error(usage) if the text is damaged.
  std::string take_preparation(const std::string& description);
  // The task of the network that the last preparation was of; empty if none was taken.
  const std::string& learnt_task() const;

  int64_t steps() const;   // of all trainings so far
  int64_t epochs() const;  // whole ones, of all trainings so far
  // Drops all training state except the weights: the next training begins at the first step.
  void forget_training();

  // Writes a checkpoint, which Network::load, Model::load, `gpunn eval` and `gpunn resume` read. If the name ends in
  // .safetensors, it writes the tensors, and the preparation of samples as metadata.
  void save(const std::filesystem::path& file) const;

  // Trains for experiment().epochs more epochs on a data set called kArrays. A later call continues from the start of
  // an epoch, with the states of the optimizer. Nothing is written unless options.run_folder names a folder. If it
  // throws, the network is as it was at the last checkpoint: the end of an epoch, or of checkpoint.every_steps.
  RunResult train(Dataset dataset, const RunOptions& options = {});
  // Evaluates the test rows of a data set. The training rows are not read.
  EvalReport evaluate(Dataset dataset, TrainingListener* listener = nullptr) const;

  // A model with the present weights. Its functions may be called from any thread.
  Model model(const ModelOptions& options = {}) const;

 private:
  class Impl;
  explicit Network(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpunn
