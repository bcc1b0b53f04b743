#include "execution/measurement/trace.hpp"

#include "catch.hpp"
#include "execution/trace_checks.hpp"

using gpunn::execution::Trace;
using trace_checks::checked;
using trace_checks::Json;

TEST_CASE("a trace names its rows and orders its spans", "[execution]") {
  Trace trace;
  const int host = trace.add_process("host"), device = trace.add_process("device");
  const int main = trace.add_row(host, "main");
  const int compute = trace.add_row(device, "compute"), copies = trace.add_row(device, "copies");
  trace.add_span(compute, "late", "op", 20, 5, {{"FLOPs", 12.5}, {"step", int64_t{3}}, {"layer", std::string("fc")}});
  trace.add_span(compute, "inner", "op", 10, 2);
  trace.add_span(compute, "outer", "step", 10, 8);
  trace.add_span(copies, "copy", "stream", 11, 30);
  trace.add_span(main, "start", "host", 0.5, 40);
  trace.note("device", std::string("a sample"));
  trace.note("ceiling", 1.5);

  const auto rows = checked(trace.json());
  REQUIRE(rows.spans.size() == 3);
  const auto& spans = rows.spans.at("device / compute");
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].at("name") == "outer");
  CHECK(spans[1].at("name") == "inner");
  CHECK(spans[2].at("name") == "late");
  CHECK(spans[2].at("args") == Json{{"FLOPs", 12.5}, {"step", 3}, {"layer", "fc"}});
  CHECK(spans[2].at("ts") == 20.0);
  CHECK(spans[2].at("dur") == 5.0);
  CHECK(rows.spans.at("host / main")[0].at("ts") == 0.5);
  CHECK(rows.document.at("otherData") == Json{{"device", "a sample"}, {"ceiling", 1.5}});
}

TEST_CASE("neighbours never overlap, whatever their times round to", "[execution]") {
  Trace trace;
  const int row = trace.add_row(trace.add_process("device"), "compute");
  double at = 123456.0004;
  for (int i = 0; i < 2000; ++i) {
    const double duration = 0.0007 * (i % 7);
    trace.add_span(row, "op", "op", at, duration);
    at += duration;
  }
  trace.add_span(row, "step", "step", 123456.0004, at - 123456.0004);
  trace.add_span(row, "backwards", "op", at, -3);
  const auto rows = checked(trace.json());
  CHECK(rows.spans.at("device / compute").size() == 2002);
}

TEST_CASE("names that are no text do not break a trace", "[execution]") {
  Trace trace;
  const int row = trace.add_row(trace.add_process("a \"quoted\" \xff process"), "row\n");
  trace.add_span(row, "\xc3\x28", "op", 1, 1, {{"why", std::string("\x80")}});
  CHECK(checked(trace.json()).spans.size() == 1);
}
