#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/export.h>
#include <gpunn/scaling.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

// A tensor of a program, with its place in memory.
struct PlannedTensor {
  std::string name;
  TensorType type;
  std::string storage;  // "arena", "parameters", ...
  uint64_t offset = 0;  // in bytes, within its storage
  uint64_t bytes = 0;
  int64_t first_op = 0, last_op = 0;  // lifetime, indices into ops
};

// An op of a program, and the plugin and kernel that run it.
struct PlannedOp {
  std::string op;    // "CONV2D_BIAS_ACTIVATION"
  std::string name;  // "conv1"
  std::string backend;
  std::string kernel;   // its name; empty: the backend has only one, or does not name them
  std::string refusal;  // why the plugins above `backend` do not run it; empty: none is above it
  std::string attributes;
  std::vector<std::string> inputs, outputs;  // "name f32[128, 10]"
  std::string layout;                        // of its images: "packed" or "channels_last"
  uint64_t workspace_bytes = 0;
  uint64_t arena_bytes = 0;  // arena bytes in use while it runs
  double flops = 0;
  int64_t subgraph = -1;  // index into PlanReport.subgraphs of the fused subgraph that contains it; -1: none
};

// Consecutive ops that a plugin fuses.
struct PlannedSubgraph {
  std::string name;  // chosen by the plugin: "fused training step"
  std::string backend;
  int64_t first_op = 0, last_op = 0;  // indices into ops
  uint64_t workspace_bytes = 0;
};

// A block or layer of `training.recompute`.
struct PlannedRecomputation {
  std::string name;
  int64_t ops = 0;  // number of ops that run a second time
};

// A pass over the program of a model for inference, and what it changed.
struct PlannedPass {
  std::string name;
  bool on = true;
  int64_t changes = 0;
  std::vector<std::string> details;  // the layer or tensor of each change
};

// A training step, or a call of a model, as it will run: ops, plugins, memory.
struct PlanReport {
  std::string notice;  // for the user: for example, which data set replaces a missing one; empty: nothing to tell
  std::string data;    // the data set, its rows, samples and classes, and whether these are the registry's numbers
  std::string start;   // what the model takes from `init_from`; empty: nothing
  std::string backend;
  std::vector<std::string> chain;   // the backend and its bases
  std::vector<PlannedPass> passes;  // for inference only; empty for a training step
  std::vector<PlannedOp> ops;       // one training step, or one call
  std::vector<PlannedSubgraph> subgraphs;
  std::vector<std::string> not_fused;  // why plugins that fuse subgraphs did not fuse certain ops
  std::vector<PlannedRecomputation> recomputed;
  std::vector<PlannedTensor> tensors;
  int64_t parameters = 0;
  int64_t trainable = 0;          // of the parameters; the others are frozen
  uint64_t arena_bytes = 0;       // activations and workspaces
  uint64_t kept_arena_bytes = 0;  // size of the arena if all activations were kept; equal without recomputation
  uint64_t persistent_bytes = 0;  // parameters, gradients, optimizer states, tables
  uint64_t data_bytes = 0;        // the resident data set, or the ring of batches that a streamed one needs
  std::string residency;          // of the data set: "device" or "stream"
  uint64_t peak_bytes = 0;        // arena and persistent
  PlannedRanks ranks;             // of a training on several devices; the plan is that of rank 0
};

// Plans a training step without running it. Only the sizes of the data set are needed, as load_sizes() returns them, so
// a published set need not be on this machine. With several devices this is the step of rank 0, and one device is
// enough to plan it. Throws what a run would if `init_from` does not fit.
GPUNN_API PlanReport plan(const Experiment& experiment, int devices = 1);

// A step at which a learning rate begins, turns or ends.
struct SchedulePoint {
  int64_t step = 0;  // counts from 1
  double epoch = 0;  // passes over the data before it
  double learning_rate = 0;
  std::string what;  // "first", "warm-up done", "drop", "restart", "highest", "last", or several: "first, highest"
};

// The learning rate of a whole training.
struct ScheduleReport {
  std::string notice;  // as PlanReport::notice
  std::string experiment, type;
  int64_t steps_per_epoch = 0, steps = 0;
  bool reacts = false;                // reduce_on_plateau: the curve holds only if the metric never stops improving
  std::vector<float> learning_rates;  // of each step
  std::vector<SchedulePoint> points;  // in order of step
  // The rate drops by factors, so a logarithmic axis shows it better.
  bool logarithmic = false;
};

// The learning rates of a training. Only the sizes of the data set are needed, as load_sizes() returns them, and no
// backend.
GPUNN_API ScheduleReport plan_schedule(const Experiment& experiment);

// Writes the curve as an SVG. Throws Error if the file can't be written.
GPUNN_API void write_chart(const ScheduleReport& report, const std::filesystem::path& file);

}  // namespace gpunn
