#pragma once

#include <gpunn/plan.hpp>

#include <cstdint>
#include <string>

#include "cli/command.hpp"
#include "cli/json.hpp"

namespace gpunn::cli {

// Of `plan`: several devices, and how long their step takes.
struct RanksPlanOptions {
  int64_t devices = 1;
  double step_milliseconds = 0;  // of one device with the rows of one of them; 0: nothing is estimated
  std::string estimate_for;      // devices, as 8,64,1024; empty: `devices`
  int64_t per_machine = 8;
  std::string link, network;  // GIGABYTES:MICROSECONDS; empty: those of Cluster

  // Throws Error(usage) on options that don't go together, or links that are none.
  void check() const;
};
void add_ranks_plan_options(Verb verb, RanksPlanOptions& options);

// Nothing where there is one device.
void print_ranks(const PlanReport& report, const RanksPlanOptions& options, bool colour);
Json estimates_json(const PlanReport& report, const RanksPlanOptions& options);

}  // namespace gpunn::cli
