// `gpunn bench op`: ops at shapes, by several backends and kernels.
#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "bench/op_chart.hpp"
#include "bench/op_request.hpp"
#include "bench/op_runner.hpp"
#include "bench/reference.hpp"
#include "bench/statistics.hpp"
#include "common/files.hpp"
#include "common/text.hpp"
#include "execution/backend.hpp"
#include "execution/measurement/ceilings.hpp"
#include "ops/op.hpp"

namespace gpunn {

namespace {

using execution::Backend;

constexpr const char* kAllKernels = "all";

class OpBench {
 public:
  explicit OpBench(const OpBenchOptions& options) : options_(options), registry_(options.plugins) {
    if (options.what.empty()) throw Error("bench: no op to measure", ExitCode::usage);
    if (options.backends.empty()) throw Error("bench: no backend to measure", ExitCode::usage);
    if (options.repeats < 1) throw Error("repeats must be at least 1", ExitCode::usage);
    for (const OpShape& one : options.what) {
      for (const std::string& shape : bench::swept(one.op, one.shape)) {
        requests_.push_back(bench::parse_request(one.op, shape, options.dtype, options.layout));
        std::string text = shape;
        if (is_half(options.dtype)) text += " " + std::string(name_of(options.dtype));
        if (options.layout == Layout::channels_last) text += " channels-last";
        shapes_.push_back({one.op, text});
      }
    }
    for (const std::string& name : options.backends) {
      for (const Precision precision : options.precisions) open(name, precision);
    }
    require_kernels();
  }

  OpBenchReport run() {
    if (options_.ceilings) measure_ceilings();
    LongWork work("measuring ops", requests_.size());
    for (std::size_t i = 0; i < requests_.size(); ++i, work.advance()) {
      work.tell(shapes_[i].op + " " + shapes_[i].shape);
      measure(i);
    }
    if (options_.ceilings) {
      raise_ceilings();
      for (std::size_t i = 0; i < report_.rows.size(); ++i) compare_with_ceiling(report_.rows[i], domains_[i]);
    }
    return std::move(report_);
  }

 private:
  using Opened = std::pair<std::string, Precision>;

  void open(const std::string& name, Precision precision) {
    auto& backend = backends_[{name, precision}];
    if (backend != nullptr) throw Error("bench: backend '" + name + "' is named twice", ExitCode::usage);
    backend = std::make_unique<Backend>(registry_, name,
                                        execution::BackendOptions{.threads = options_.threads, .precision = precision});
  }

  bool all_kernels() const { return std::ranges::find(options_.kernels, kAllKernels) != options_.kernels.end(); }

  // Each wanted name must be known to a backend for at least one of the ops.
  void require_kernels() const {
    std::set<std::string> known;
    if (options_.kernels.empty()) return;
    for (const auto& [opened, backend] : backends_) {
      for (const ops::Case& request : requests_) {
        for (const execution::NamedKernel& kernel : backend->kernels(request.signature)) known.insert(kernel.name);
      }
    }
    for (const std::string& wanted : options_.kernels) {
      if (wanted == kAllKernels || known.contains(wanted)) continue;
      throw Error("bench: no kernel '" + wanted + "' serves these ops" +
                      (known.empty() ? "; the backends have no names for theirs"
                                     : did_you_mean_or_list(wanted, {known.begin(), known.end()})),
                  ExitCode::usage);
    }
  }

  // Those that the op is measured with; "": the plugin's own choice.
  std::vector<std::string> kernels_of(const Backend& backend, const ops::Case& request) const {
    std::vector<std::string> names;
    if (options_.kernels.empty() || all_kernels()) names.emplace_back();
    if (options_.kernels.empty()) return names;
    const std::vector<std::string> chain = backend.chain();
    for (const execution::NamedKernel& kernel : backend.kernels(request.signature)) {
      // A base that is measured itself shows its kernels there.
      const std::string& owner = chain[static_cast<std::size_t>(kernel.level)];
      if (kernel.level > 0 && std::ranges::find(options_.backends, owner) != options_.backends.end()) continue;
      const bool wanted = all_kernels() || std::ranges::find(options_.kernels, kernel.name) != options_.kernels.end();
      if (wanted && std::ranges::find(names, kernel.name) == names.end()) names.push_back(kernel.name);
    }
    if (names.empty()) names.emplace_back();
    return names;
  }

  void measure(std::size_t index) {
    const ops::Case& request = requests_[index];
    const std::vector<std::vector<std::byte>> inputs = bench::inputs_of(request, options_.seed);
    std::optional<bench::Reference> reference = bench::Reference::of(request.signature, inputs);
    for (const Precision precision : options_.precisions) {
      double first = 0;
      for (const std::string& name : options_.backends) {
        Backend& backend = *backends_.at({name, precision});
        for (const std::string& kernel : kernels_of(backend, request)) {
          OpBenchRow row;
          row.op = ops::op_info(request.signature.op).name;
          row.shape = shapes_[index].shape;
          row.precision = precision;
          row.backend = backend.name();
          row.kernel = kernel;
          row.flops = ops::flops_of(request.signature);
          row.bytes = ops::bytes_of(request.signature);
          fill(row, backend, request, inputs, reference);
          if (first == 0 && name == options_.backends.front()) first = row.median_seconds;
          if (first > 0 && row.median_seconds > 0) row.speed_up = first / row.median_seconds;
          if (options_.on_row) options_.on_row(row);
          domains_.emplace_back(backend.info().memory_domain);
          report_.rows.push_back(std::move(row));
        }
      }
    }
  }

  // What goes wrong with one is the row's, and no end of the others.
  void fill(OpBenchRow& row, Backend& backend, const ops::Case& request,
            const std::vector<std::vector<std::byte>>& inputs, std::optional<bench::Reference>& reference) const {
    try {
      backend.want_kernels(row.kernel.empty() ? std::vector<std::string>() : std::vector<std::string>(1, row.kernel));
      const execution::Placement placement = backend.place(request.signature);
      if (placement.level < 0) {
        row.failure = placement.reason;
        return;
      }
      row.served_by = backend.chain()[static_cast<std::size_t>(placement.level)];
      row.workspace_bytes = placement.workspace_bytes;
      bench::OpRunner runner(backend, request.signature, placement, inputs, options_.cold);
      const std::vector<std::vector<std::byte>> outputs = runner.run_once();
      if (reference) {
        const bench::Reference::Deviation deviation = reference->judge(outputs, row.precision);
        row.error = deviation.error;
        row.error_allowed = deviation.allowed;
        row.checked = deviation.checked;
        row.wrong = deviation.detail;
      }
      const bench::SampleTimes times = runner.time({.repeats = options_.repeats, .warmup = options_.warmup});
      row.repeats = static_cast<int64_t>(times.seconds.size());
      row.runs = times.runs;
      row.captured = times.captured;
      row.buffer_sets = runner.sets();
      row.min_seconds = times.seconds.front();
      row.max_seconds = times.seconds.back();
      row.median_seconds = bench::median_of_sorted(times.seconds);
      if (row.median_seconds > 0) {
        row.teraflops = row.flops / row.median_seconds * 1e-12;
        row.gigabytes = row.bytes / row.median_seconds * 1e-9;
      }
    } catch (const Error& error) {
      row.failure = error.what();
    }
  }

  OpCeiling& ceiling(const std::string& domain, Precision precision) {
    for (OpCeiling& one : report_.ceilings) {
      if (one.memory_domain == domain && one.precision == precision) return one;
    }
    report_.ceilings.push_back({.memory_domain = domain, .precision = precision, .copy_by = {}, .matmul_by = {}});
    return report_.ceilings.back();
  }

  void measure_ceilings() {
    LongWork work("measuring the ceilings", options_.precisions.size() * options_.backends.size());
    for (const Precision precision : options_.precisions) {
      for (const std::string& name : options_.backends) {
        Backend& backend = *backends_.at({name, precision});
        const execution::Ceilings found = execution::measure_ceilings(backend);
        OpCeiling& best = ceiling(backend.info().memory_domain, precision);
        if (found.bytes_per_second > best.bytes_per_second) {
          best.bytes_per_second = found.bytes_per_second;
          best.copy_by = found.copy_by;
        }
        if (found.flops_per_second > best.flops_per_second) {
          best.flops_per_second = found.flops_per_second;
          best.matmul_by = found.matmul_by;
        }
        work.advance();
      }
    }
  }

  // A product that was faster than those of measure_ceilings is what the device can do.
  void raise_ceilings() {
    for (std::size_t i = 0; i < report_.rows.size(); ++i) {
      const OpBenchRow& row = report_.rows[i];
      if (row.op != "MATMUL" || !row.wrong.empty()) continue;
      OpCeiling& best = ceiling(domains_[i], row.precision);
      if (row.teraflops * 1e12 <= best.flops_per_second) continue;
      best.flops_per_second = row.teraflops * 1e12;
      best.matmul_by = row.op + " " + row.shape + " of '" + row.backend + "'";
    }
  }

  void compare_with_ceiling(OpBenchRow& row, const std::string& domain) {
    if (row.median_seconds <= 0) return;
    const OpCeiling& best = ceiling(domain, row.precision);
    execution::Ceilings ceilings;
    ceilings.bytes_per_second = best.bytes_per_second;
    ceilings.flops_per_second = best.flops_per_second;
    row.ceiling_share = ceilings.seconds_at_best(row.flops, row.bytes) / row.median_seconds;
  }

  const OpBenchOptions& options_;
  plugins::PluginRegistry registry_;
  std::vector<ops::Case> requests_;
  std::vector<OpShape> shapes_;
  std::map<Opened, std::unique_ptr<Backend>> backends_;
  std::vector<std::string> domains_;  // by row
  OpBenchReport report_;
};

}  // namespace

std::string name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::f16:
      return "f16";
  }
  return "";
}

bool OpBenchReport::ok() const {
  return std::ranges::all_of(rows, [](const OpBenchRow& row) { return row.wrong.empty(); }) &&
         std::ranges::any_of(rows, [](const OpBenchRow& row) { return row.failure.empty(); });
}

OpBenchReport bench_ops(const OpBenchOptions& options) {
  if (!options.chart.empty()) require_writable(options.chart);
  OpBenchReport report = OpBench(options).run();
  if (!options.chart.empty()) write_atomically(options.chart, chart::svg(bench::roofline_of(report)));
  return report;
}

}  // namespace gpunn
