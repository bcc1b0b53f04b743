#include "program/loss_scale.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "graph/expressions.hpp"
#include "program/programs.hpp"

namespace gpunn::training {

using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

constexpr const char* kName = "loss_scale";
constexpr double kLargestScale = 0x1p127;  // in f32

ValueId whole_of(const Graph& g, ValueId value) {
  while (g.value(value).view_of != graph::kNoValue) value = g.value(value).view_of;
  return value;
}

}  // namespace

bool scales_loss(const Experiment& experiment) { return half_of(experiment.precision) == DType::f16; }

LossScaleValues add_loss_scale(Graph& g) {
  const auto number = [&](const char* name) { return g.add_value(name, {DType::f32, {}}, Storage::state); };
  return {.scale = number(variable::kLossScale),
          .good_steps = number(variable::kGoodSteps),
          .skipped = number(variable::kSkippedSteps)};
}

ValueId add_unscaling(Graph& g, const LossScaleValues& values, ValueId gradients) {
  graph::Expressions e(g, kName);
  g.add_into(GPUNN_OP_DIV, "gradients.unscaled", {}, {gradients, values.scale}, {gradients});
  // The norm is finite where every gradient is, and their squares can be added up.
  const ValueId norm = e.op(GPUNN_OP_NORM, {gradients});
  return e.less_equal(norm, e.constant(std::numeric_limits<float>::max()));
}

ValueId add_update_count(Graph& g, const LossScaleValues& values, ValueId step) {
  graph::Expressions e(g, kName);
  const ValueId updates = e.sub(e.to_f32(step), values.skipped);
  const ValueId count = g.add_value("updates", {DType::i64, {}}, Storage::arena);
  g.add_into(GPUNN_OP_COPY, kName, {}, {updates}, {count});
  return count;
}

void undo_unless(Graph& g, const ParameterLayout& layout, std::size_t first, ValueId finite) {
  std::vector<ValueId> written;
  for (std::size_t i = first; i < g.nodes().size(); ++i) {
    for (const ValueId output : g.nodes()[i].outputs) {
      const ValueId whole = whole_of(g, output);
      const Storage storage = g.value(whole).storage;
      if (storage != Storage::parameters && storage != Storage::optimizer) continue;
      if (std::ranges::find(written, whole) == written.end()) written.push_back(whole);
    }
  }
  const std::size_t updated = g.nodes().size();
  std::vector<ValueId> now, before;
  for (const ValueId whole : written) {
    const std::string name = g.value(whole).name;
    const TensorType trained = layout.trained_type();  // frozen parameters, which lie behind, do not change
    const bool of_parameters = name != variable::kAverageBuffers;
    const bool has_frozen = of_parameters && g.value(whole).type == layout.type() && layout.type() != trained;
    now.push_back(has_frozen ? g.add_view(name + ".trained", whole, trained) : whole);
    before.push_back(g.add1(GPUNN_OP_COPY, name + ".before", {}, {now.back()}));
  }
  const auto begin = g.nodes().begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(updated),
              g.nodes().end());
  for (std::size_t i = 0; i < written.size(); ++i) {
    g.add_into(GPUNN_OP_SELECT, g.value(written[i]).name + ".updated", {}, {finite, now[i], before[i]}, {now[i]});
  }
}

void add_scale_update(Graph& g, const LossScaleValues& values, ValueId finite) {
  graph::Expressions e(g, kName);
  const ValueId good = e.mul(finite, e.add(values.good_steps, e.constant(1)));
  const ValueId grows = e.less_equal(e.constant(static_cast<double>(kStepsToGrow)), good);
  const ValueId grown = e.minimum(e.scaled(values.scale, 2), e.constant(kLargestScale));
  const ValueId after_good = e.select(grows, grown, values.scale);
  g.add_into(GPUNN_OP_SELECT, kName, {}, {finite, after_good, e.scaled(values.scale, 0.5)}, {values.scale});
  g.add_into(GPUNN_OP_SELECT, kName, {}, {grows, e.constant(0), good}, {values.good_steps});
  g.add_into(GPUNN_OP_ADD, kName, {}, {values.skipped, e.sub(e.constant(1), finite)}, {values.skipped});
}

}  // namespace gpunn::training
