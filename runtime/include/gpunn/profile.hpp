#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

// How a training is profiled, and where the trace goes.
struct ProfileOptions {
  std::filesystem::path file;  // where the trace goes; empty: trace.json in the run folder
  int64_t steps = 20;          // measured op by op
  int64_t warmup = 3;          // steps before the measured ones
};

// One op of the training step, over all measured steps.
struct ProfiledOp {
  std::string op;    // "CONV2D"
  std::string name;  // of the layer
  std::string backend;
  int64_t count = 0;
  double seconds = 0;  // on the device, over all measured steps
  double share = 0;    // of the seconds of all ops, 0 to 1
  double flops = 0;    // of one run
  double bytes = 0;    // of one run, read and written
  double gflops = 0;   // a second; 0: the clock was too coarse
  double gigabytes = 0;
  double ceiling_share = 0;  // shortest time that the device's measured best allows, over the measured time; 0: unknown
};

// The time of a training step, op by op.
struct ProfileReport {
  std::filesystem::path file;
  std::string backend, device;
  int64_t steps = 0;
  double step_seconds = 0;        // of the ops of one step, on the device
  double whole_step_seconds = 0;  // median of steps run as in training; 0: not measured
  bool captured = false;          // whether those steps were a captured graph
  // The fused subgraphs of whole steps, which are not measured op by op: "fusing: fused step, 36 ops from ...".
  std::vector<std::string> subgraphs;
  double ceiling_gflops = 0;     // rate of a large matrix product; 0: the backend has none
  double ceiling_gigabytes = 0;  // rate of a large copy, read and written
  std::vector<ProfiledOp> ops;   // the largest seconds first
};

}  // namespace gpunn
