#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/export.h>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

// A layer of a model. FLOPs are multiplications and additions, for one batch.
struct SummaryLayer {
  std::string name, type;  // as in the model's YAML, and in checkpoints
  Shape output;            // of a batch
  int64_t parameters = 0;
  int64_t trainable = 0;  // of the parameters; the others are frozen
  int64_t buffers = 0;    // numbers kept beside the parameters, such as running statistics
  double forward_flops = 0;
  double step_flops = 0;  // forward and gradients, in a training step
};

// A model's layers, and the work and memory of training it.
struct SummaryReport {
  std::string model;
  std::string data;    // the data set, its rows, samples and classes, and whether these are the registry's numbers
  std::string start;   // what the model takes from `init_from`; empty: nothing
  std::string notice;  // for the user; empty: nothing to tell
  Shape sample;        // [C, H, W] or [features]
  int64_t batch_size = 0;
  int64_t samples_per_step = 0;
  std::vector<SummaryLayer> layers;  // in the order of the YAML
  int64_t parameters = 0, trainable = 0, buffers = 0;
  double forward_flops = 0;  // of a batch
  double step_flops = 0;     // of a training step: forward, loss, gradients, update
  // Bytes of device memory, without workspaces, tables and the data set, which depend on the backend.
  uint64_t parameter_bytes = 0;  // with the buffers
  uint64_t gradient_bytes = 0;
  uint64_t optimizer_bytes = 0;   // its states, and training.ema's average
  uint64_t activation_bytes = 0;  // largest set of values that a step must keep at one time
  uint64_t total_bytes = 0;
};

// The model or experiment that is summarised.
struct SummaryRequest {
  std::filesystem::path file;  // an experiment, or a model by itself
  std::vector<Override> overrides;
  Shape input;  // of one sample, instead of the data set's; required for a model alone that names no input
};

// Summarises the layers of a model, and the work and memory of training it. Uses no device and no samples. Throws what
// a run would if the experiment or its `init_from` does not fit.
GPUNN_API SummaryReport summarize(const SummaryRequest& request);

// The same for an experiment in memory, for samples of this shape; empty: of the shapes that the model says.
GPUNN_API SummaryReport summarize(const Experiment& experiment, const Shape& input);

}  // namespace gpunn
