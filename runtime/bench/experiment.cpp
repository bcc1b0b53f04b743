#include <gpunn/bench.hpp>

#include "bench/statistics.hpp"
#include "config/checked_backends.hpp"
#include "graph/op_info.hpp"
#include "training/session.hpp"

namespace gpunn {

BenchReport bench_experiment(const Experiment& experiment, const BenchOptions& options) {
  Experiment measured = experiment;
  if (options.backend != "auto") measured.backend = options.backend;
  measured.plugins.insert(measured.plugins.end(), options.plugins.begin(), options.plugins.end());
  if (options.threads > 0) measured.threads = options.threads;
  config::require_one_backend(measured.backend, "a benchmark");
  training::Session session(measured);
  session.training();

  // A sample is a run of steps long enough for the clock: several steps are enqueued before the stream is waited for,
  // as in a training.
  constexpr int kStepsPerSample = 10;
  const auto sample = [&] {
    for (int i = 0; i < kStepsPerSample; ++i) session.train_step();
    session.backend().synchronize();
  };
  BenchReport report = bench::measure(sample, options, kStepsPerSample);
  report.what = measured.name;
  report.notice = session.notice();
  report.backend = session.backend().name();
  report.images_per_second = static_cast<double>(measured.data.batch_size) / report.median_seconds;
  report.peak_bytes = session.arena_bytes() + session.persistent_bytes();
  double flops = 0;
  const graph::Graph& program = session.training().graph;
  for (const graph::Node& node : program.nodes()) flops += graph::flops_of(program.signature(node));
  report.gflops = flops / report.median_seconds * 1e-9;
  return report;
}

}  // namespace gpunn
