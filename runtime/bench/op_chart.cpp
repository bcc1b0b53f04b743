#include "bench/op_chart.hpp"

#include <algorithm>
#include <cctype>

namespace gpunn::bench {

chart::Roofline roofline_of(const OpBenchReport& report) {
  chart::Roofline roofline;
  roofline.title = "Roofline";
  roofline.subtitle = "medians of ops on random data; the lines are the best copy and the best matrix product measured";
  std::vector<Precision> precisions;
  for (const OpBenchRow& row : report.rows) {
    if (std::ranges::find(precisions, row.precision) == precisions.end()) precisions.push_back(row.precision);
  }
  for (const OpCeiling& ceiling : report.ceilings) {
    const bool host = ceiling.memory_domain == "host";
    roofline.ceilings.push_back({.name = (host ? "host, " : "") + name_of(ceiling.precision),
                                 .bytes_per_second = ceiling.bytes_per_second,
                                 .flops_per_second = ceiling.flops_per_second});
  }
  for (const OpBenchRow& row : report.rows) {
    std::string op = row.op;
    std::ranges::transform(op, op.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string series = row.backend + (row.kernel.empty() ? "" : " " + row.kernel);
    if (precisions.size() > 1) series += ", " + name_of(row.precision);
    roofline.points.push_back({.name = op + " " + row.shape,
                               .series = series,
                               .flops = row.flops,
                               .bytes = row.bytes,
                               .seconds = row.median_seconds});
  }
  return roofline;
}

}  // namespace gpunn::bench
