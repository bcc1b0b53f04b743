#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpunn {

struct PlannedTensor {
  std::string name;
  TensorType type;
  std::string storage;  // "arena", "parameters", ...
  uint64_t offset = 0;  // in its storage
  uint64_t bytes = 0;
  int64_t first_op = 0, last_op = 0;  // lifetime, indices into ops
};

struct PlannedOp {
  std::string op;    // "CONV2D_BIAS_ACTIVATION"
  std::string name;  // "conv1"
  std::string backend;
  std::string attributes;
  std::vector<std::string> inputs, outputs;  // "name f32[128, 10]"
  uint64_t workspace_bytes = 0;
  double flops = 0;
};

struct PlanReport {
  std::string notice;  // what the user must know, as of a data set in place of the one asked for; empty: nothing
  std::string backend;
  std::vector<std::string> chain;  // the backend and its bases
  std::vector<PlannedOp> ops;      // one training step
  std::vector<PlannedTensor> tensors;
  int64_t parameters = 0;
  uint64_t arena_bytes = 0;       // activations and workspaces
  uint64_t persistent_bytes = 0;  // parameters, gradients, optimizer states, tables
  uint64_t data_bytes = 0;        // the resident data set, or the ring of batches that it is streamed through
  std::string residency;          // of the data set: "device" or "stream"
  uint64_t peak_bytes = 0;        // arena and persistent
};

// Plans a training step without running it. The data set is loaded for its shape.
PlanReport plan(const Experiment& experiment);

}  // namespace gpunn
