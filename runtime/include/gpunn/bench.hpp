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
  std::string notice;  // what the user must know, as of a data set in place of the one asked for; empty: nothing
  int64_t repeats = 0;
  double median_seconds = 0, min_seconds = 0, max_seconds = 0;
  double gflops = 0;  // per second at the median; 0 where not counted
  double samples_per_second = 0;
  uint64_t peak_bytes = 0;  // of buffers on the device, a data set that lies there excluded

  uint64_t arena_bytes = 0, persistent_bytes = 0, data_bytes = 0;
  int64_t allocations = 0;       // of device memory, in all timed steps together
  int64_t synchronizations = 0;  // how often a timed step had the host wait for the device
  bool captured = false;         // whether the steps are launches of a captured graph
  std::string eager_reason;      // why they are not

  // The pool that serves buffers that no plan knows.
  int64_t pool_requests = 0, pool_hits = 0;
  double pool_hit_rate = 0;
  uint64_t pool_peak_bytes = 0;
};

// How a training step is timed: after `warmup` steps the median of `repeats`.
struct BenchOptions {
  std::string backend = "auto";
  std::vector<std::filesystem::path> plugins;
  int64_t repeats = 30;
  int64_t warmup = 3;
  int threads = 0;
  std::vector<std::string> kernels;  // wanted by name, as an experiment's
};

// One training step of an experiment, on its own data.
GPUNN_API BenchReport bench_experiment(const Experiment& experiment, const BenchOptions& options);

// An op of the catalogue at a shape: "matmul" "1024x1024x1024", "conv2d" "128,64,32,32,64,3,3,pad=1". Each family of
// ops has a form of its own; a range "512..8192" goes through the powers of two times its beginning.
struct OpShape {
  std::string op, shape;
};

GPUNN_API std::string name_of(Precision precision);  // as experiments call it

// One op by one backend and kernel.
struct OpBenchRow {
  std::string op, shape;
  Precision precision = Precision::fp32;
  std::string backend;    // as asked for
  std::string served_by;  // the plugin of its chain that has the kernel
  std::string kernel;     // the named one; empty: the plugin's own choice
  std::string failure;    // why it was not measured; empty: it was
  int64_t repeats = 0;    // samples
  int64_t runs = 0;       // in a sample, one behind the other
  // The runs of a sample are one launch of a captured graph: the time is the device's, without the host's part in a
  // launch. Otherwise they were enqueued one by one.
  bool captured = false;
  int64_t buffer_sets = 1;  // that the runs go through in turn: with more than one, no run finds its data in a cache
  double median_seconds = 0, min_seconds = 0, max_seconds = 0;  // of a run
  double flops = 0, bytes = 0;                                  // of a run; bytes: tensors read and written once
  double teraflops = 0;                                         // per second at the median
  double gigabytes = 0;                                         // per second at the median
  double speed_up = 0;       // over the first backend's row of this op, shape and precision; 0: unknown
  double ceiling_share = 0;  // the time that the measured ceilings leave possible, over the median; 0: unknown
  uint64_t workspace_bytes = 0;
  // Against the op in float64: the largest difference over the largest value, and over what conformance allows. For
  // large products and convolutions some outputs are compared, each with its whole sum. Negative: not known.
  double error = -1, error_allowed = -1;
  int64_t checked = 0;  // output elements that were looked at
  std::string wrong;    // what is beyond the tolerance; empty: nothing
};

// The best that was measured on a device, of all backends together.
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
  bool ok() const;  // nothing is wrong, and something was measured
};

// Which ops bench_ops() times, by which backends and kernels, and how often.
struct OpBenchOptions {
  std::vector<OpShape> what;
  std::vector<std::string> backends = {"auto"};  // speed-ups are over the first
  std::vector<std::filesystem::path> plugins;
  // Named kernels, a row each, in place of the backends' own choice where they have them; "all": every one that there
  // is, beside the own choice.
  std::vector<std::string> kernels;
  std::vector<Precision> precisions = {Precision::fp32};
  DType dtype = DType::f32;        // of the tensors that may be of half precision
  Layout layout = Layout::packed;  // of images
  int64_t repeats = 30;            // at most: a slow op gets fewer, five at least
  int64_t warmup = 3;
  int threads = 0;
  bool cold = false;  // each run on data that no cache holds
  bool ceilings = true;
  uint64_t seed = 1;
  std::filesystem::path chart;  // an SVG of the rows in the roofline (Williams et al., 2009); empty: none
  std::function<void(const OpBenchRow&)> on_row;  // speed_up is known, ceiling_share is not yet
};

// All on the same random data, in this process. Throws Error(usage) for an op, shape or kernel that there is not.
GPUNN_API OpBenchReport bench_ops(const OpBenchOptions& options);

// The ops that can be measured.
GPUNN_API std::vector<std::string> bench_op_names();

// The shapes of a preset: "gemm", "conv", "memory", "small", or "all" of them. Throws Error(usage) for another.
GPUNN_API std::vector<OpShape> bench_preset(const std::string& name);
GPUNN_API const std::vector<std::string>& bench_presets();

// How fast a data set's training batches are made on the host.
struct LoaderBench {
  std::string source;
  int64_t samples = 0;
  double seconds = 0;
  int64_t threads = 0;
  double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};
// Of the batches that the experiment's training begins with, for about so many seconds; no backend is opened.
GPUNN_API LoaderBench bench_loader(const Experiment& experiment, double seconds);

}  // namespace gpunn
