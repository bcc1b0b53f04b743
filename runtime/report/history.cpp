#include "report/history.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "common/input_file.hpp"
#include "common/metric_json.hpp"

namespace gpunn::reports {

namespace {

using nlohmann::json;

double number(const json& record, const std::string& key) {
  const auto found = record.find(key);
  return found == record.end() ? kUndefined : metric_of_json(*found);
}

std::optional<int64_t> count(const json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

}  // namespace

History read_history(const std::filesystem::path& metrics_jsonl, std::vector<Metric> metrics) {
  History history;
  history.metrics = std::move(metrics);
  if (!path_exists(metrics_jsonl)) return history;
  std::istringstream lines(read_text(metrics_jsonl));
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line, nullptr, false);
    if (!record.is_object()) continue;
    const std::optional<int64_t> step = count(record, "global_step"), epoch = count(record, "epoch");
    if (!step || !epoch) continue;
    const bool whole_epoch = record.value("kind", json()) == "epoch";
    const auto best = record.find("best");
    // Records of earlier versions call every part "test".
    if (record.contains("validation_loss")) history.part = EvaluationPart::validation;
    const std::string part = record.contains("validation_loss") ? "validation" : "test";
    Record one{.step = *step,
               .epoch = *epoch,
               .train_loss = number(record, whole_epoch ? "train_loss" : "loss"),
               .learning_rate = number(record, "learning_rate"),
               .samples_per_second = number(record, "samples_per_second"),
               .train_scores = {},
               .loss = number(record, part + "_loss"),
               .scores = {},
               .train_seconds = number(record, "train_seconds"),
               .best = best != record.end() && best->is_boolean() && best->get<bool>()};
    for (const Metric& metric : history.metrics) {
      one.train_scores.push_back(number(record, (whole_epoch ? "train_" : "") + metric.name));
      one.scores.push_back(number(record, part + "_" + metric.name));
    }
    (whole_epoch ? history.epochs : history.steps).push_back(one);
  }
  std::ranges::stable_sort(history.steps, {}, &Record::step);
  std::ranges::stable_sort(history.epochs, {}, &Record::step);
  return history;
}

}  // namespace gpunn::reports
