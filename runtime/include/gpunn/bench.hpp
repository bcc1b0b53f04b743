#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/export.h>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gpunn {

// The time of an experiment's training step.
struct BenchReport {
  std::string what;  // the experiment's name
  std::string backend;
  std::string notice;  // for the user: for example, which data set replaces a missing one; empty: nothing to tell
  int64_t repeats = 0;
  double median_seconds = 0, min_seconds = 0, max_seconds = 0;
  double gflops = 0;  // GFLOP/s at the median; 0: not counted
  double samples_per_second = 0;
  uint64_t peak_bytes = 0;  // of buffers on the device, without a resident data set

  uint64_t arena_bytes = 0, persistent_bytes = 0, data_bytes = 0;
  int64_t allocations = 0;       // of device memory, in all timed steps together
  int64_t synchronizations = 0;  // how often a timed step made the host wait for the device
  bool captured = false;         // whether the steps are launches of a captured graph
  std::string eager_reason;      // why the steps are not captured

  // The pool that serves buffers outside the memory plan.
  int64_t pool_requests = 0, pool_hits = 0;
  double pool_hit_rate = 0;
  uint64_t pool_peak_bytes = 0;
};

// How a training step is timed: the median of `repeats` steps after `warmup` steps.
struct BenchOptions {
  std::string backend = "auto";
  std::vector<std::filesystem::path> plugins;
  int64_t repeats = 30;
  int64_t warmup = 3;
  int threads = 0;
  std::vector<std::string> kernels;  // names of wanted kernels, as in an experiment
};

// One training step of an experiment, on its own data.
GPUNN_API BenchReport bench_experiment(const Experiment& experiment, const BenchOptions& options);

// An op of the catalogue and its shape: "matmul" "1024x1024x1024", "conv2d" "128,64,32,32,64,3,3,pad=1". Each family of
// ops has its own form. A range "512..8192" stands for 512, 1024, 2048, 4096, 8192.
struct OpShape {
  std::string op, shape;
};

GPUNN_API std::string name_of(Precision precision);  // as experiments call it

// One op by one backend and kernel.
struct OpBenchRow {
  std::string op, shape;
  Precision precision = Precision::fp32;
  std::string backend;    // as the caller named it
  std::string served_by;  // the plugin of its chain that has the kernel
  std::string kernel;     // its name; empty: the plugin's own choice
  std::string failure;    // why it was not measured; empty: measured
  int64_t repeats = 0;    // samples
  int64_t runs = 0;       // runs in a sample, one after another
  // True: the runs of a sample are one launch of a captured graph, so that the time contains no launch overhead. False:
  // the host enqueued them one by one.
  bool captured = false;
  int64_t buffer_sets = 1;  // sets of tensors that the runs take in turn; more than 1: no run finds its data in a cache
  double median_seconds = 0, min_seconds = 0, max_seconds = 0;  // of a run
  double flops = 0, bytes = 0;                                  // of a run; `bytes` counts each tensor once
  double teraflops = 0;                                         // TFLOP/s at the median
  double gigabytes = 0;                                         // GB/s at the median
  double speed_up = 0;       // over the first backend's row of the same op, shape and precision; 0: unknown
  double ceiling_share = 0;  // shortest time that the measured ceilings allow, over the median; 0: unknown
  uint64_t workspace_bytes = 0;
  // The largest difference from the float64 reference: over the largest value, and over the tolerance. Of large
  // products and convolutions, some outputs are compared. Negative: unknown.
  double error = -1, error_allowed = -1;
  int64_t checked = 0;  // output elements that were compared
  std::string wrong;    // which output is beyond the tolerance; empty: none
};

// The highest rates measured on a device, over all backends.
struct OpCeiling {
  std::string memory_domain;
  Precision precision = Precision::fp32;
  double bytes_per_second = 0, flops_per_second = 0;
  std::string copy_by, matmul_by;
};

// The result of bench_ops(): a row an op, shape, backend and kernel.
struct GPUNN_API OpBenchReport {
  std::vector<OpBenchRow> rows;
  std::vector<OpCeiling> ceilings;
  bool ok() const;  // every result is right, and at least one op was measured
};

// Which ops bench_ops() times, by which backends and kernels, and how often.
struct OpBenchOptions {
  std::vector<OpShape> what;
  std::vector<std::string> backends = {"auto"};  // speed-ups are relative to the first
  std::vector<std::filesystem::path> plugins;
  // Names of kernels: each one adds a row. They replace the backend's own choice where the backend has them. "all": the
  // own choice and every named kernel.
  std::vector<std::string> kernels;
  std::vector<Precision> precisions = {Precision::fp32};
  DType dtype = DType::f32;        // of the tensors that may be of half precision
  Layout layout = Layout::packed;  // of images
  int64_t repeats = 30;            // most samples; slow ops get fewer, but at least five
  int64_t warmup = 3;
  int threads = 0;
  bool cold = false;  // run on data that no cache holds
  bool ceilings = true;
  uint64_t seed = 1;
  std::filesystem::path chart;  // an SVG of the rows in the roofline (Williams et al., 2009); empty: none
  std::function<void(const OpBenchRow&)> on_row;  // called for each row; its ceiling_share is not set yet
};

// All rows use the same random data and run in this process. Throws Error(usage) for an unknown op, shape or kernel.
GPUNN_API OpBenchReport bench_ops(const OpBenchOptions& options);

// The ops that can be measured.
GPUNN_API std::vector<std::string> bench_op_names();

// The shapes of a preset: "gemm", "conv", "memory", "small", or "all" of them. Throws Error(usage) for another name.
GPUNN_API std::vector<OpShape> bench_preset(const std::string& name);
GPUNN_API const std::vector<std::string>& bench_presets();

// How fast the host makes a data set's training batches.
struct LoaderBench {
  std::string source;
  int64_t samples = 0;
  double seconds = 0;
  int64_t threads = 0;
  double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};
// Makes the first training batches of the experiment for about this many seconds. Opens no backend.
GPUNN_API LoaderBench bench_loader(const Experiment& experiment, double seconds);

}  // namespace gpunn
