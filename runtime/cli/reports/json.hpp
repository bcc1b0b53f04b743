#pragma once

#include <gpunn/bench.hpp>
#include <gpunn/bench_inference.hpp>
#include <gpunn/check.hpp>
#include <gpunn/data.hpp>
#include <gpunn/evaluation.hpp>
#include <gpunn/ops.hpp>
#include <gpunn/plan.hpp>
#include <gpunn/plugins.hpp>
#include <gpunn/profile.hpp>
#include <gpunn/quantization.hpp>
#include <gpunn/race.hpp>
#include <gpunn/summary.hpp>
#include <gpunn/training.hpp>

#include <string>

#include <nlohmann/json.hpp>

// The library's reports as JSON. Keys are the members' names in the public headers; docs/cli.md shows each report.
namespace gpunn::cli {

using Json = nlohmann::ordered_json;

Json to_json(const PluginReport& report);
Json to_json(const eager::OpDescription& op);
Json to_json(const PlannedTensor& tensor);
Json to_json(const PlannedOp& op);
Json to_json(const PlannedSubgraph& subgraph);
Json to_json(const PlannedRecomputation& stage);
Json to_json(const PlannedPass& pass);
Json to_json(const QuantizedLayer& layer);
Json to_json(const QuantizeReport& report);
Json to_json(const InferenceBenchRow& row);
Json to_json(const InferenceBenchReport& report);
Json to_json(const PlannedCollective& one);
Json to_json(const PlannedRanks& ranks);
Json to_json(const PlanReport& report);
Json to_json(const SummaryLayer& layer);
Json to_json(const SummaryReport& report);
Json to_json(const SchedulePoint& point);
Json to_json(const ScheduleReport& report);
Json to_json(const CheckCase& result);
Json to_json(const CheckReport& report);
Json to_json(const BenchReport& report);
Json to_json(const OpBenchRow& row);
Json to_json(const OpBenchReport& report);
Json to_json(const ProfiledOp& op);
Json to_json(const ProfileReport& report);
Json to_json(const StepReport& report);
Json to_json(const EvalReport& report);
Json to_json(const ClassReport& report);
Json to_json(const ClassEvalReport& report, bool with_confusion);
Json to_json(const EpochReport& report);
Json to_json(const BackendComparison& comparison);
Json to_json(const RunResult& result);
Json to_json(const FaultReport& report);
Json to_json(const RaceEntry& entry);
Json to_json(const RaceReport& report);
Json to_json(const Prediction& prediction);
Json to_json(const DatasetInfo& info);

// Prints to stdout; indented unless it is one of many lines. Replaces bytes that are not UTF-8, and writes null for a
// number that is not finite.
void print_json(const Json& document);
void print_json_line(const Json& document);

}  // namespace gpunn::cli
