#pragma once

#include <gpunn/plan.hpp>

#include <cstdint>
#include <string>

#include "cli/command.hpp"
#include "cli/reports/json.hpp"

namespace gpunn::cli {

// Options of `plan` for several devices, and for an estimate of their step.
struct RanksPlanOptions {
  int64_t devices = 1;
  double step_milliseconds = 0;  // on one device with the rows of one of them; 0: no estimate
  std::string estimate_for;      // devices, as 8,64,1024; empty: `devices`
  int64_t per_machine = 8;
  std::string link, network;  // GIGABYTES:MICROSECONDS; empty: the defaults of Cluster

  // Throws Error(usage) if options contradict each other or a link is malformed.
  void check() const;
};
void add_ranks_plan_options(Verb verb, RanksPlanOptions& options);

// Empty with one device.
void print_ranks(const PlanReport& report, const RanksPlanOptions& options, bool colour);
Json estimates_json(const PlanReport& report, const RanksPlanOptions& options);

}  // namespace gpunn::cli
