#include "conformance/training/subgraphs.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "conformance/training/kept_state.hpp"
#include "ops/comparison.hpp"
#include "ops/tolerance.hpp"
#include "ops/values.hpp"
#include "session/session.hpp"

namespace gpunn::conformance {

using ops::compare;
using ops::decode;
using ops::encode;
using ops::product_roundoff;
using ops::unit_roundoff;

namespace {

using training::Session;
using Tensors = std::vector<storage::StoredTensor>;

constexpr int64_t kTrainingRounds = 5;
// The first rounds run single steps, enqueued and captured. Later rounds cross the end of an epoch and run several
// steps a launch.
int64_t steps_of(int64_t round) { return round < 2 ? 1 : round + 1; }

template <class... Values>
std::string text(const char* format, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size());
  std::ranges::transform(a, b, result.begin(), [](double x, double y) { return x - y; });
  return result;
}

// The largest error as a multiple of its bound, and its place in words.
struct WorstTensor {
  double error = 0;
  std::string where;
  void add(double off, double allowed, const std::string& what) {
    const double units = off == 0 ? 0 : std::isfinite(off) ? off / allowed : HUGE_VAL;
    if (units < error || (units == 0 && !where.empty())) return;
    error = units;
    where = what + text(" is off by %.3g, allowed is %.3g", off, allowed);
  }
  void add(const WorstTensor& other) {
    if (other.error >= error) *this = other;
  }
};

// Counts of rows: a row whose best classes nearly tie may count as right or wrong.
void compare_totals(const std::vector<double>& expected, const std::vector<double>& found, double loss,
                    WorstTensor& worst) {
  worst.add(std::abs(found[0] - expected[0]), loss * std::abs(expected[0]), "the sum of losses");
  worst.add(std::abs(found[1] - expected[1]), 1 + 0.005 * expected[3], "the number of rows that are right");
  worst.add(std::abs(found[2] - expected[2]), 1 + 0.005 * expected[3], "the number of rows right in five");
  worst.add(std::abs(found[3] - expected[3]), 0, "the number of rows");
}

// `before` is the state that both began with. It has no loss. `spread`, if there is one, has for each tensor what it
// may be off by beside the tolerance.
WorstTensor compare(const Tensors& before, const Tensors& expected, const Tensors& found,
                    const SubgraphTolerance& tolerance, const std::vector<double>& spread = {}) {
  WorstTensor worst;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TensorType& type = expected[i].type;
    const std::vector<double> right = decode(type, expected[i].values).values;
    const std::vector<double> here = decode(type, found[i].values).values;
    if (expected[i].name == "loss") {
      worst.add(std::abs(here[0] - right[0]), tolerance.loss * std::abs(right[0]), "the loss");
    } else if (type == TensorType{DType::f64, {4}}) {
      compare_totals(right, here, tolerance.loss, worst);
    } else {
      const double change = norm(difference(right, decode(type, before[i].values).values));
      // In a tensor that barely changes, the rounding of its values shows.
      const double rounding = 4 * unit_roundoff(type.dtype) * norm(right);
      const double allowed = tolerance.change * change + rounding + (spread.empty() ? 0 : spread[i]);
      worst.add(norm(difference(here, right)), allowed, "'" + expected[i].name + "'");
    }
  }
  return worst;
}

// The beginning with each parameter changed by up to 16 units of roundoff.
storage::Checkpoint nudged(storage::Checkpoint beginning, uint64_t seed) {
  ops::Random random(seed, "nudged");
  for (storage::StoredTensor& parameter : beginning.parameters) {
    if (parameter.type.dtype != DType::f32) continue;
    std::vector<double> values = decode(parameter.type, parameter.values).values;
    for (double& value : values) value *= 1 + 16 * unit_roundoff(DType::f32) * random.uniform(-1, 1);
    parameter.values = encode(ops::ReferenceTensor{parameter.type, std::move(values)});
  }
  return beginning;
}

// How far apart roundings alone bring two trainings, for each tensor: a ReLU or a maximum that nearly ties goes either
// way, which in a small batch is more than the tolerance. Measured: the steps once more from nearly the same state, op
// by op, a few times. The session ends where it began.
std::vector<double> spread_of_rounding(Session& op_by_op, const storage::Checkpoint& beginning, int64_t steps) {
  constexpr uint64_t kTrials = 6;
  const Tensors expected = state_of(op_by_op);
  std::vector<double> spread(expected.size());
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    op_by_op.restore_state(nudged(beginning, trial));
    op_by_op.train_steps(steps);
    const Tensors found = state_of(op_by_op);
    for (std::size_t i = 0; i < spread.size(); ++i) {
      const std::vector<double> off = difference(decode(found[i].type, found[i].values).values,
                                                 decode(expected[i].type, expected[i].values).values);
      spread[i] = std::max(spread[i], 2 * norm(off));
    }
  }
  op_by_op.restore_state(beginning);
  op_by_op.train_steps(steps);
  return spread;
}

Experiment in_fp32(Experiment experiment) {
  experiment.precision = Precision::fp32;
  return experiment;
}

Tensors state_without_loss(const storage::Checkpoint& checkpoint) {
  Tensors tensors = checkpoint.parameters;
  tensors.insert(tensors.end(), checkpoint.buffers.begin(), checkpoint.buffers.end());
  for (const auto& [name, states] : checkpoint.optimizer) tensors.insert(tensors.end(), states.begin(), states.end());
  tensors.insert(tensors.end(), checkpoint.state.begin(), checkpoint.state.end());
  return tensors;
}

bool all_deterministic(const std::vector<execution::Subgraph>& subgraphs) {
  return std::ranges::all_of(subgraphs,
                             [](const auto& subgraph) { return (subgraph.flags & GPUNN_OP_DETERMINISTIC) != 0; });
}

std::string subgraphs_text(const execution::CompiledProgram& program) {
  std::string result;
  std::size_t ops = 0;
  for (const execution::Subgraph& subgraph : program.subgraphs.taken) {
    result += (result.empty() ? "" : ", ") + subgraph.name;
    ops += subgraph.nodes.count;
  }
  return std::to_string(ops) + " of " + std::to_string(program.graph.nodes().size()) + " ops fused (" + result + ")";
}

bool same(const std::vector<execution::Subgraph>& a, const std::vector<execution::Subgraph>& b) {
  return std::ranges::equal(a, b, [](const execution::Subgraph& x, const execution::Subgraph& y) {
    return x.nodes.first == y.nodes.first && x.nodes.count == y.nodes.count && x.workspace_bytes == y.workspace_bytes &&
           x.flags == y.flags && x.level == y.level;
  });
}

// Each op in turn is hidden from the plugin: its subgraphs must end before that op, or the host throws. Afterwards the
// plugin must answer the first question as before.
void check_offers(const execution::Backend& backend, const execution::CompiledProgram& program) {
  const std::size_t ops = program.placements.size();
  for (std::size_t hidden = 0; hidden < ops; ++hidden) {
    graph::Graph graph = program.graph;
    std::vector<execution::Placement> placements = program.placements;
    placements[hidden].level = -1;
    backend.fuse_subgraphs(graph, placements);
  }
  graph::Graph graph = program.graph;
  std::vector<execution::Placement> placements = program.placements;
  if (!same(backend.fuse_subgraphs(graph, placements).taken, program.subgraphs.taken)) {
    throw Error("a step program that is offered a second time is fused differently");
  }
}

// This fails a plugin under test that has the extension itself and says why it fuses nothing: one that says nothing has
// no pattern of such networks. A base is excused: its subgraphs end at each op that an overlay runs.
void nothing_fused(const execution::CompiledProgram& program, const execution::Backend& backend, bool rare,
                   CheckCase& result) {
  const std::vector<std::string> fusing_plugins = backend.fusing_plugins();
  result.verdict = Verdict::unsupported;
  result.optional = rare || program.subgraphs.reasons.empty() || fusing_plugins.empty() ||
                    fusing_plugins.front() != backend.chain().front();
  result.detail = fusing_plugins.empty() ? "no plugin of the chain fuses subgraphs" : "no op is fused";
  for (const std::string& reason : program.subgraphs.reasons) result.detail += "; " + reason;
}

// Repeats the steps from the same beginning, several a launch if the backend captures, and requires equal bits.
void require_same_bits(const Experiment& experiment, const Tensors& expected, int64_t steps) {
  Session again = Session::open(experiment);
  again.train_steps(1);
  again.train_steps(1);
  if (steps > 2) again.train_steps(steps - 2);
  const Tensors found = state_of(again);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].values == found[i].values) continue;
    throw Error("the subgraphs are said to be deterministic, but '" + expected[i].name +
                "' has other bits when the same training of " + std::to_string(steps) +
                " steps runs again, several steps a launch");
  }
}

}  // namespace

SubgraphTolerance subgraph_tolerance(const FusedTraining& training, Precision precision) {
  // A subgraph may compute in fp32 where the ops round. Their errors pass through about six products in a row.
  const double rounding = precision == Precision::fp32 ? 0 : 32 * product_roundoff(precision);
  // The first steps of an adaptive optimizer have the same length for each gradient. A gradient smaller than its error
  // may have the wrong sign, which makes its element off by twice its change. The larger the error, the more elements
  // are affected.
  const double change = training.adaptive ? std::max(2e-2, 2 * std::sqrt(rounding)) : std::max(1e-3, rounding);
  return {.change = change, .loss = std::max(1e-4, rounding)};
}

void run_fused(const FusedTraining& training, Workbench& bench, CheckCase& result) {
  Experiment experiment = experiment_of(training.sample, bench.options(), bench.options().backend);
  experiment.precision = bench.options().precision;
  const std::unique_ptr<Session> fused = open_training(experiment, result);
  if (fused == nullptr) return;
  if (fused->training().subgraphs.taken.empty()) {
    return nothing_fused(fused->training(), fused->backend(), training.rare, result);
  }
  check_offers(fused->backend(), fused->training());
  Experiment plain = experiment;
  plain.subgraphs = false;
  Session op_by_op = Session::open(plain);

  const SubgraphTolerance tolerance = subgraph_tolerance(training, experiment.precision);
  std::unique_ptr<Session> exact;  // op by op in fp32, opened when first needed
  WorstTensor worst;
  for (int64_t round = 0; round < kTrainingRounds; ++round) {
    storage::Checkpoint beginning;
    op_by_op.save_state(beginning);
    // A step op by op first, so that gradients and scratch memory hold values that a fused step must not depend on.
    fused->train_step_observed([](const graph::Node&) {});
    fused->restore_state(beginning);
    op_by_op.restore_state(beginning);
    fused->train_steps(steps_of(round));
    op_by_op.train_steps(steps_of(round));
    if (fused->step() != op_by_op.step()) {
      throw Error("the step counter is " + std::to_string(fused->step()) + " after fused subgraphs and " +
                  std::to_string(op_by_op.step()) + " op by op");
    }
    WorstTensor of_round = compare(state_without_loss(beginning), state_of(op_by_op), state_of(*fused), tolerance);
    if (of_round.error > 1 && experiment.precision != Precision::fp32) {
      if (exact == nullptr) exact = std::make_unique<Session>(Session::open(in_fp32(plain)));
      exact->restore_state(beginning);
      exact->train_steps(steps_of(round));
      const WorstTensor of_exact = compare(state_without_loss(beginning), state_of(*exact), state_of(*fused),
                                           subgraph_tolerance(training, Precision::fp32));
      if (of_exact.error < of_round.error) of_round = of_exact;
    }
    if (of_round.error > 1) {
      const Tensors found = state_of(*fused);
      const std::vector<double> spread = spread_of_rounding(op_by_op, beginning, steps_of(round));
      of_round = compare(state_without_loss(beginning), state_of(op_by_op), found, tolerance, spread);
    }
    worst.add(of_round);
    if (worst.error > 1) {
      throw Error("after " + std::to_string(steps_of(round)) + " steps from the state of step " +
                  std::to_string(beginning.counters.at("step")) + " " + worst.where + "; " +
                  subgraphs_text(fused->training()));
    }
  }
  const EvalReport expected = op_by_op.evaluate();
  const EvalReport found = fused->evaluate();
  worst.add(std::abs(found.loss - expected.loss), 20 * tolerance.change * expected.loss, "the loss of an evaluation");
  worst.add(std::abs(found.scores.value("accuracy") - expected.scores.value("accuracy")), 0.03,
            "the accuracy of an evaluation");
  result.error = worst.error;
  if (worst.error > 1) throw Error(worst.where + "; " + subgraphs_text(fused->training()));

  if (all_deterministic(fused->training().subgraphs.taken)) {
    Session first = Session::open(experiment);
    constexpr int64_t kSteps = 40;
    for (int64_t i = 0; i < kSteps; ++i) first.train_steps(1);
    require_same_bits(experiment, state_of(first), kSteps);
  }
  result.detail = subgraphs_text(fused->training()) + "; nearest to its bound: " + worst.where;
}

}  // namespace gpunn::conformance
