#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "serving/api/api.hpp"

namespace gpunn::serving {

namespace {

// A model's label in the form of Prometheus; names have no character that wants an escape.
std::string labels_of(const ServedModel& model) {
  return fmt::format("model=\"{}\",version=\"{}\"", model.name, model.version);
}

class MetricsText {
 public:
  void begin(std::string_view name, std::string_view help, std::string_view type) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void add(std::string_view labels, double value) {
    if (labels.empty()) {
      fmt::format_to(std::back_inserter(text_), "{} {}\n", name_, value);
    } else {
      fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name_, labels, value);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_, name_;
};

struct CpuTimes {
  double busy = 0, all = 0;
};

std::optional<CpuTimes> cpu_times() {
  std::ifstream file("/proc/stat");
  std::string word;
  if (!(file >> word) || word != "cpu") return std::nullopt;
  CpuTimes times;
  double value = 0;
  for (int i = 0; i < 8 && file >> value; ++i) {
    times.all += value;
    if (i != 3 && i != 4) times.busy += value;  // idle, and waiting for a disk
  }
  return times;
}

// From one call to the next, 0 to 1.
double cpu_utilization() {
  static std::mutex mutex;
  static CpuTimes last;
  const std::lock_guard lock(mutex);
  const std::optional<CpuTimes> now = cpu_times();
  if (!now) return 0;
  const double all = now->all - last.all, busy = now->busy - last.busy;
  last = *now;
  return all > 0 ? std::clamp(busy / all, 0.0, 1.0) : 0;
}

double memory_bytes(std::string_view which) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(which)) continue;
    std::istringstream rest(line.substr(which.size()));
    double kilobytes = 0;
    rest >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

double microseconds(const Spent& spent) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(spent.time).count());
}

}  // namespace

std::string prometheus_metrics(const std::vector<ServedModelPtr>& models) {
  struct Row {
    std::string labels;
    StatisticsReport report;
  };
  std::vector<Row> rows;
  for (const ServedModelPtr& model : models) rows.push_back({labels_of(*model), model->statistics.report()});
  MetricsText text;
  const auto each = [&](std::string_view name, std::string_view help, std::string_view type, const auto& value) {
    text.begin(name, help, type);
    for (const Row& row : rows) text.add(row.labels, value(row.report));
  };
  const auto count = [](uint64_t number) { return static_cast<double>(number); };
  using Report = StatisticsReport;
  each("nv_inference_request_success", "Number of successful inference requests, all batch sizes", "counter",
       [&](const Report& r) { return count(r.success.count); });
  text.begin("nv_inference_request_failure", "Number of failed inference requests, all batch sizes", "counter");
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kFailureNames.size(); ++i) {
      text.add(fmt::format("{},reason=\"{}\"", row.labels, kFailureNames[i]), count(row.report.failures[i]));
    }
  }
  each("nv_inference_count", "Number of inferences performed (does not include cached requests)", "counter",
       [&](const Report& r) { return count(r.inferences); });
  each("nv_inference_exec_count", "Number of model executions performed (does not include cached requests)", "counter",
       [&](const Report& r) { return count(r.executions); });
  each("nv_inference_request_duration_us",
       "Cumulative inference request duration in microseconds (includes cached requests)", "counter",
       [](const Report& r) { return microseconds(r.success); });
  each("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", "counter",
       [](const Report& r) { return microseconds(r.queue); });
  each("nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds", "counter",
       [](const Report& r) { return microseconds(r.input); });
  each("nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds", "counter",
       [](const Report& r) { return microseconds(r.infer); });
  each("nv_inference_compute_output_duration_us", "Cumulative inference compute output duration in microseconds",
       "counter", [](const Report& r) { return microseconds(r.output); });
  each("nv_inference_pending_request_count", "Instantaneous number of pending requests awaiting execution per-model.",
       "gauge", [&](const Report& r) { return count(r.pending); });
  text.begin("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", "gauge");
  text.add("", cpu_utilization());
  const double total = memory_bytes("MemTotal:");
  text.begin("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", "gauge");
  text.add("", total);
  text.begin("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", "gauge");
  text.add("", total - memory_bytes("MemAvailable:"));
  return text.take();
}

}  // namespace gpunn::serving
