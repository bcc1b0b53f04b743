#include "execution/measurement/trace.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace gpunn::execution {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Trace::Arguments& arguments) {
  Json result = Json::object();
  for (const auto& [key, value] : arguments) {
    std::visit([&, name = key](const auto& plain) { result[name] = plain; }, value);
  }
  return result;
}

Json metadata(const char* what, int process, int row, Json arguments) {
  Json event = {{"ph", "M"}, {"name", what}, {"pid", process}};
  if (row > 0) event["tid"] = row;
  event["args"] = std::move(arguments);
  return event;
}

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

}  // namespace

int Trace::add_process(std::string name) {
  processes_.push_back(std::move(name));
  return static_cast<int>(processes_.size());
}

int Trace::add_row(int process, std::string name) {
  rows_.push_back({process, std::move(name)});
  return static_cast<int>(rows_.size());
}

void Trace::add_span(int row, std::string name, std::string category, double start, double duration,
                     Arguments arguments) {
  spans_.push_back({row, std::move(name), std::move(category), std::llround(start * 1000),
                    std::llround((start + std::max(duration, 0.0)) * 1000), std::move(arguments)});
}

void Trace::note(std::string key, Value value) { notes_.emplace_back(std::move(key), std::move(value)); }

// Complete events ("X") by their beginning, outer ones before what is in them, as viewers want them.
std::string Trace::json() const {
  Json events = Json::array();
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const int process = static_cast<int>(i) + 1;
    events.push_back(metadata("process_name", process, 0, {{"name", processes_[i]}}));
    events.push_back(metadata("process_sort_index", process, 0, {{"sort_index", process}}));
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const int row = static_cast<int>(i) + 1;
    events.push_back(metadata("thread_name", rows_[i].process, row, {{"name", rows_[i].name}}));
    events.push_back(metadata("thread_sort_index", rows_[i].process, row, {{"sort_index", row}}));
  }
  std::vector<const Span*> order;
  order.reserve(spans_.size());
  for (const Span& span : spans_) order.push_back(&span);
  std::ranges::stable_sort(
      order, [](const Span* a, const Span* b) { return a->start != b->start ? a->start < b->start : a->end > b->end; });
  for (const Span* span : order) {
    const Row& row = rows_[static_cast<std::size_t>(span->row) - 1];
    Json event = {{"ph", "X"},
                  {"name", span->name},
                  {"cat", span->category},
                  {"pid", row.process},
                  {"tid", span->row},
                  {"ts", microseconds(span->start)},
                  {"dur", microseconds(span->end - span->start)}};
    if (!span->arguments.empty()) event["args"] = to_json(span->arguments);
    events.push_back(std::move(event));
  }
  const Json document = {{"displayTimeUnit", "ns"}, {"otherData", to_json(notes_)}, {"traceEvents", std::move(events)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpunn::execution
