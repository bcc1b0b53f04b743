#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gpunn::execution {

// A timeline in the JSON object format of Chrome's tracing, which chrome://tracing and ui.perfetto.dev show. Spans of
// one row must lie apart or one inside the other. Times are microseconds on one clock.
class Trace {
 public:
  using Value = std::variant<int64_t, double, std::string>;
  using Arguments = std::vector<std::pair<std::string, Value>>;

  // Processes and rows are shown in the order in which they are added.
  int add_process(std::string name);
  int add_row(int process, std::string name);
  void add_span(int row, std::string name, std::string category, double start, double duration,
                Arguments arguments = {});
  // A note about the whole trace.
  void note(std::string key, Value value);

  std::size_t spans() const { return spans_.size(); }
  std::string json() const;

 private:
  struct Row {
    int process;
    std::string name;
  };
  struct Span {
    int row;
    std::string name, category;
    int64_t start, end;  // nanoseconds, so that no rounding makes neighbours overlap
    Arguments arguments;
  };
  std::vector<std::string> processes_;
  std::vector<Row> rows_;
  std::vector<Span> spans_;
  Arguments notes_;
};

}  // namespace gpunn::execution
