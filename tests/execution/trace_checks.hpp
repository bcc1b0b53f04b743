// Whether a text is a trace that the viewers show as it is meant.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "catch.hpp"

namespace trace_checks {

using Json = nlohmann::ordered_json;

// A trace as its reader sees it: the spans of each row, by name.
struct Rows {
  Json document;
  std::map<std::string, std::vector<Json>> spans;  // "process / row"
};

// Every span has a row, every row and process a name; spans come by their beginning, and in a row each two lie apart or
// one inside the other.
inline Rows checked(const std::string& text) {
  Rows rows;
  rows.document = Json::parse(text);
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::pair<int, int>, std::vector<std::pair<int64_t, int64_t>>> open;
  double last = 0;
  const auto nanoseconds = [](const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); };
  for (const Json& event : rows.document.at("traceEvents")) {
    const int process = event.at("pid");
    if (event.at("ph") == "M") {
      const Json& arguments = event.at("args");
      if (event.at("name") == "process_name") processes[process] = arguments.at("name");
      if (event.at("name") == "thread_name") names[{process, event.at("tid")}] = arguments.at("name");
      continue;
    }
    REQUIRE(event.at("ph") == "X");
    const std::pair<int, int> row{process, event.at("tid")};
    REQUIRE(processes.count(process) == 1);
    REQUIRE(names.count(row) == 1);
    CHECK(event.at("name").get<std::string>() != "");
    const double at = event.at("ts");
    CHECK(at >= last);
    CHECK(event.at("dur").get<double>() >= 0);
    last = at;
    const int64_t begin = nanoseconds(event.at("ts")), end = begin + nanoseconds(event.at("dur"));
    auto& outer = open[row];
    while (!outer.empty() && outer.back().second <= begin) outer.pop_back();
    if (!outer.empty()) CHECK(end <= outer.back().second);
    outer.emplace_back(begin, end);
    rows.spans[processes[process] + " / " + names[row]].push_back(event);
  }
  return rows;
}

inline std::vector<Json> of_category(const std::vector<Json>& spans, const std::string& category) {
  std::vector<Json> result;
  for (const Json& span : spans) {
    if (span.at("cat") == category) result.push_back(span);
  }
  return result;
}

}  // namespace trace_checks
