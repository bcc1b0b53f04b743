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
  uint64_t offset = 0;  // in its storage
  uint64_t bytes = 0;
  int64_t first_op = 0, last_op = 0;  // lifetime, indices into ops
};

// An op of a program, and the plugin and kernel that run it.
struct PlannedOp {
  std::string op;    // "CONV2D_BIAS_ACTIVATION"
  std::string name;  // "conv1"
  std::string backend;
  std::string kernel;   // that runs it, by its name; empty: the backend has one only, or several that are alike
  std::string refusal;  // why the plugins above `backend` do not run it; empty: there are none
  std::string attributes;
  std::vector<std::string> inputs, outputs;  // "name f32[128, 10]"
  std::string layout;                        // of its images: "packed" or "channels_last"
  uint64_t workspace_bytes = 0;
  uint64_t arena_bytes = 0;  // in use while it runs
  double flops = 0;
  int64_t subgraph = -1;  // the fused subgraph that it belongs to, an index into PlanReport.subgraphs; -1: none
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
  int64_t ops = 0;  // that run a second time
};

// A pass over the program of a model that is called, and what it did.
struct PlannedPass {
  std::string name;
  bool on = true;
  int64_t changes = 0;
  std::vector<std::string> details;  // each change, by its layer or tensor
};

// A training step, or a call of a model, as it will run: ops, plugins, memory.
struct PlanReport {
  std::string notice;  // what the user must know, as of a data set in place of the one asked for; empty: nothing
  std::string data;    // the data set, its rows, samples and classes, and whether they are the registry's word
  std::string start;   // what `init_from` has for the model; empty: there is none
  std::string backend;
  std::vector<std::string> chain;   // the backend and its bases
  std::vector<PlannedPass> passes;  // of a model that is called; none of a training step
  std::vector<PlannedOp> ops;       // one training step, or one call
  std::vector<PlannedSubgraph> subgraphs;
  std::vector<std::string> not_fused;  // why plugins that fuse subgraphs did not fuse these ops
  std::vector<PlannedRecomputation> recomputed;
  std::vector<PlannedTensor> tensors;
  int64_t parameters = 0;
  int64_t trainable = 0;          // of the parameters; the others are frozen
  uint64_t arena_bytes = 0;       // activations and workspaces
  uint64_t kept_arena_bytes = 0;  // the arena if all activations were kept; without recomputation the same
  uint64_t persistent_bytes = 0;  // parameters, gradients, optimizer states, tables
  uint64_t data_bytes = 0;        // the resident data set, or the ring of batches that it is streamed through
  std::string residency;          // of the data set: "device" or "stream"
  uint64_t peak_bytes = 0;        // arena and persistent
  PlannedRanks ranks;             // of a training on several devices, whose first one this is
};

// Plans a training step without running it. It takes only the sizes of the data set, as load_sizes() has them: a
// published one need not be on this machine. Throws what a run would where `init_from` does not fit. With several
// devices it is the step of the first of them; one is all that is needed.
GPUNN_API PlanReport plan(const Experiment& experiment, int devices = 1);

// A step at which a learning rate begins, turns or ends.
struct SchedulePoint {
  int64_t step = 0;  // counts from 1
  double epoch = 0;  // passes over the data before it
  double learning_rate = 0;
  std::string what;  // "first", "warm-up done", "drop", "restart", "highest", "last", or some of them: "first, highest"
};

// The learning rate of a whole training.
struct ScheduleReport {
  std::string notice;  // as a PlanReport's
  std::string experiment, type;
  int64_t steps_per_epoch = 0, steps = 0;
  bool reacts = false;                // reduce_on_plateau: this is the curve if the metric never stops improving
  std::vector<float> learning_rates;  // of each step
  std::vector<SchedulePoint> points;  // by rising step
  // Whether the curve is better shown on a logarithmic axis: it drops by factors.
  bool logarithmic = false;
};

// The learning rates that a training will have. It takes only the sizes of the data set, as load_sizes() has them; no
// backend is needed.
GPUNN_API ScheduleReport plan_schedule(const Experiment& experiment);

// The curve as an SVG. Throws Error where the file can't be written.
GPUNN_API void write_chart(const ScheduleReport& report, const std::filesystem::path& file);

}  // namespace gpunn
