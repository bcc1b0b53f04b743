#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>

#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "values/record.hpp"
#include "values/words.hpp"

namespace gpunn::python {

namespace {

namespace fs = std::filesystem;

// Ends work that tells of each row, once it was stopped.
void end_if_stopped(const Errand& errand) {
  if (errand.stopped()) throw Error("interrupted", ExitCode::interrupted);
}

void bind_bench_rows(nb::module_& module) {
  Record<OpBenchRow>(module, "OpBenchRow", "One op by one backend and kernel. Times in seconds.")
      .field("op", &OpBenchRow::op)
      .field("shape", &OpBenchRow::shape)
      .computed("precision", [](const OpBenchRow& r) { return name_of(r.precision); })
      .field("backend", &OpBenchRow::backend)
      .field("served_by", &OpBenchRow::served_by)
      .field("kernel", &OpBenchRow::kernel, "The named one; empty: the plugin's own choice.")
      .field("failure", &OpBenchRow::failure, "Why it was not measured; empty: it was.")
      .field("repeats", &OpBenchRow::repeats)
      .field("runs", &OpBenchRow::runs)
      .field("captured", &OpBenchRow::captured)
      .field("median_seconds", &OpBenchRow::median_seconds)
      .field("min_seconds", &OpBenchRow::min_seconds)
      .field("max_seconds", &OpBenchRow::max_seconds)
      .field("flops", &OpBenchRow::flops)
      .field("bytes", &OpBenchRow::bytes)
      .field("teraflops", &OpBenchRow::teraflops)
      .field("gigabytes", &OpBenchRow::gigabytes)
      .field("speed_up", &OpBenchRow::speed_up, "Over the first backend's row; 0: unknown.")
      .field("ceiling_share", &OpBenchRow::ceiling_share, "0: unknown.")
      .field("error", &OpBenchRow::error, "Against float64; negative: not known.")
      .field("error_allowed", &OpBenchRow::error_allowed)
      .field("wrong", &OpBenchRow::wrong, "What is beyond the tolerance; empty: nothing.");
  Record<OpBenchReport>(module, "OpBenchReport", "Ops of the catalogue, timed.")
      .field("rows", &OpBenchReport::rows)
      .computed(
          "ok", [](const OpBenchReport& r) { return r.ok(); }, "Nothing is wrong, and something was measured.");
}

}  // namespace

void bind_bench(nb::module_& module) {
  Record<BenchReport>(module, "BenchReport", "An experiment's training step, timed. Times in seconds.")
      .field("what", &BenchReport::what)
      .field("backend", &BenchReport::backend)
      .field("notice", &BenchReport::notice)
      .field("repeats", &BenchReport::repeats)
      .field("median_seconds", &BenchReport::median_seconds)
      .field("min_seconds", &BenchReport::min_seconds)
      .field("max_seconds", &BenchReport::max_seconds)
      .field("gflops", &BenchReport::gflops)
      .field("samples_per_second", &BenchReport::samples_per_second)
      .field("peak_bytes", &BenchReport::peak_bytes)
      .field("arena_bytes", &BenchReport::arena_bytes)
      .field("persistent_bytes", &BenchReport::persistent_bytes)
      .field("data_bytes", &BenchReport::data_bytes)
      .field("allocations", &BenchReport::allocations)
      .field("synchronizations", &BenchReport::synchronizations)
      .field("captured", &BenchReport::captured)
      .field("eager_reason", &BenchReport::eager_reason);
  bind_bench_rows(module);
  module.def(
      "bench_experiment",
      [](const Experiment& experiment, int64_t repeats, int64_t warmup) {
        return on_errand(false, [experiment, repeats, warmup](Errand&) {
          return bench_experiment(experiment, {.backend = experiment.backend,
                                               .plugins = experiment.plugins,
                                               .repeats = repeats,
                                               .warmup = warmup,
                                               .threads = static_cast<int>(experiment.threads),
                                               .kernels = experiment.kernels});
        });
      },
      nb::arg("experiment"), nb::arg("repeats"), nb::arg("warmup"), "Times the training step of an experiment.");
  module.def(
      "bench_ops",
      [](const std::vector<std::pair<std::string, std::string>>& what, const std::vector<std::string>& backends,
         const std::vector<fs::path>& plugins, const std::vector<std::string>& kernels,
         const std::vector<std::string>& precisions, const std::string& dtype, const std::string& layout,
         int64_t repeats, int64_t warmup, int threads, bool cold, bool ceilings, uint64_t seed, const fs::path& chart) {
        OpBenchOptions options{.what = {},
                               .backends = backends,
                               .plugins = plugins,
                               .kernels = kernels,
                               .precisions = {},
                               .dtype = dtype_named(dtype),
                               .layout = layout_named(layout),
                               .repeats = repeats,
                               .warmup = warmup,
                               .threads = threads,
                               .cold = cold,
                               .ceilings = ceilings,
                               .seed = seed,
                               .chart = chart,
                               .on_row = {}};
        for (const auto& [op, shape] : what) options.what.push_back({op, shape});
        for (const std::string& one : precisions) options.precisions.push_back(precision_named(one));
        return on_errand(false, [options](Errand& errand) mutable {
          options.on_row = [&](const OpBenchRow&) { end_if_stopped(errand); };
          return bench_ops(options);
        });
      },
      nb::arg("what"), nb::arg("backends"), nb::arg("plugins"), nb::arg("kernels"), nb::arg("precisions"),
      nb::arg("dtype"), nb::arg("layout"), nb::arg("repeats"), nb::arg("warmup"), nb::arg("threads"), nb::arg("cold"),
      nb::arg("ceilings"), nb::arg("seed"), nb::arg("chart"), "Times ops, each given by its name and shape.");
  module.def("bench_op_names", &bench_op_names, "The ops that can be timed.");
  module.def(
      "bench_preset",
      [](const std::string& name) {
        std::vector<std::pair<std::string, std::string>> shapes;
        for (const OpShape& one : bench_preset(name)) shapes.emplace_back(one.op, one.shape);
        return shapes;
      },
      nb::arg("name"), "The ops and shapes of a preset.");
  module.def("bench_presets", &bench_presets, "The names of presets.");
}

}  // namespace gpunn::python
