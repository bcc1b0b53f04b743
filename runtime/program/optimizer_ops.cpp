#include "program/optimizer_ops.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>

#include "graph/output_types.hpp"
#include "optim/optimizer/optimizer_rows.hpp"
#include "program/muon_ops.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

std::vector<OptimizerState> optimizer_states(const OptimizerConfig& config) {
  const OptimizerRow& row = config::row_of(optimizer_rows(), config);
  return row.states == nullptr ? std::vector<OptimizerState>() : row.states(config);
}

std::string bounds_variable(std::size_t range) { return "parameter_bounds." + std::to_string(range); }

namespace {

// The elements of a range in a flat array.
ValueId part_of(Graph& g, const UpdateRange& range, ValueId flat, const std::string& name) {
  const TensorType type{DType::f32, {range.end - range.begin}};
  if (g.value(flat).type == type) return flat;
  return g.add_view(name + "." + g.value(flat).name, flat, type, range.begin * static_cast<int64_t>(sizeof(float)));
}

// The same of an array of several rows, in which the rows of a range lie one behind the other: a matrix.
ValueId rows_of(Graph& g, const UpdateRange& range, ValueId flat, int64_t rows, const std::string& name) {
  const TensorType type{DType::f32, {rows, range.end - range.begin}};
  return g.add_view(name + "." + g.value(flat).name, flat, type,
                    rows * range.begin * static_cast<int64_t>(sizeof(float)));
}

std::string range_name(const ParameterLayout& layout, const char* what, std::size_t range) {
  return layout.ranges.size() == 1 ? what : what + ("." + std::to_string(range));
}

// Whether the node may write its only output over the value, which it may read itself.
bool may_write_over(const Graph& g, const graph::Node& node, ValueId value) {
  const std::vector<int>& aliases = graph::op_row(node.op).signature.outputs.at(0).may_alias;
  int reads = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (g.root(node.inputs[i]) != g.root(value)) continue;
    const bool allowed = node.inputs[i] == value && std::ranges::count(aliases, static_cast<int>(i)) != 0;
    if (!allowed || ++reads > 1) return false;
  }
  return node.outputs.size() == 1;
}

// Has the node, of those from `first` on, that makes `result` write it to `variable` at once. False, and nothing is
// changed, where a later one still reads what the variable held.
bool make_in_place(Graph& g, std::size_t first, ValueId result, ValueId variable) {
  const graph::Value& value = g.value(result);
  if (value.storage != Storage::arena || value.view_of != graph::kNoValue || value.type != g.value(variable).type ||
      std::ranges::count(g.values(), result, &graph::Value::view_of) != 0) {
    return false;
  }
  std::vector<graph::Node>& nodes = g.nodes();
  const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(first);
  const auto maker = std::find_if(
      begin, nodes.end(), [&](const graph::Node& node) { return std::ranges::count(node.outputs, result) != 0; });
  if (maker == nodes.end() || !may_write_over(g, *maker, variable)) return false;
  const bool read_later = std::any_of(maker + 1, nodes.end(), [&](const graph::Node& node) {
    return std::ranges::any_of(node.inputs, [&](ValueId input) { return g.root(input) == g.root(variable); });
  });
  if (read_later) return false;
  maker->outputs.front() = variable;
  for (auto node = maker + 1; node != nodes.end(); ++node) std::ranges::replace(node->inputs, result, variable);
  return true;
}

// A result replaces what it is made of when nothing reads that any more.
void add_formula(Graph& g, const std::string& name, UpdateFormula formula, const OptimizerConfig& o,
                 const UpdateInputs& in) {
  const std::size_t first = g.nodes().size();
  graph::Expressions e(g, name);
  const std::vector<ValueId> made = formula(e, o, in);
  std::vector<ValueId> variables = {in.weights};
  variables.insert(variables.end(), in.states.begin(), in.states.end());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (std::ranges::count(made, made.at(i)) == 1 && make_in_place(g, first, made[i], variables[i])) continue;
    g.add_into(GPUNN_OP_COPY, name, {}, {made.at(i)}, {variables[i]});
  }
}

// Over the ranks, of what each of them has.
ValueId add_norm_of_shards(Graph& g, const ParameterLayout& layout, ValueId gradients) {
  graph::Expressions e(g, "gradient_norm");
  ValueId squares = e.constant(0, {1, 1});
  for (const UpdateRange& range : layout.ranges) {
    const ValueId norm = e.view(e.op(GPUNN_OP_NORM, {part_of(g, range, gradients, "gradient_norm")}), {1, 1});
    squares = e.add(squares, e.mul(norm, norm));
  }
  const auto ranks = static_cast<int32_t>(layout.trained / layout.kept);
  const gpunn_all_reduce_attrs parts{.struct_size = 0, .parts = ranks};
  return e.sqrt(e.view(e.op(GPUNN_OP_ALL_REDUCE, {squares}, Attributes::of(parts)), {}));
}

}  // namespace

bool records_gradient_norm(const Experiment& experiment) {
  return experiment.check_gradients || experiment.optimizer.clip_norm > 0;
}

ValueId add_gradient_bounds(Graph& g, const Experiment& experiment, const ParameterLayout& layout,
                            const UpdateValues& values) {
  const OptimizerConfig& o = experiment.optimizer;
  for (std::size_t i = 0; i < layout.ranges.size() && o.l1 > 0; ++i) {
    const UpdateRange& range = layout.ranges[i];
    if (range.decayed == 0) continue;
    const std::string name = range_name(layout, "l1", i);
    g.add(
        GPUNN_OP_L1_GRADIENT, name,
        Attributes::of(gpunn_l1_attrs{.struct_size = 0, .weight = static_cast<float>(o.l1), .decayed = range.decayed}),
        {part_of(g, range, values.gradients, name), part_of(g, range, values.parameters, name)});
  }
  if (o.clip_value > 0) {
    const auto bound = static_cast<float>(o.clip_value);
    g.add_into(GPUNN_OP_CLAMP, "clip_value",
               Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = -bound, .high = bound}), {values.gradients},
               {values.gradients});
  }
  if (!records_gradient_norm(experiment)) return graph::kNoValue;
  const ValueId norm = layout.kept == layout.trained ? g.add1(GPUNN_OP_NORM, "gradient_norm", {}, {values.gradients})
                                                     : add_norm_of_shards(g, layout, values.gradients);
  if (o.clip_norm > 0) {
    const gpunn_clip_norm_attrs clip{
        .struct_size = 0, .max_norm = static_cast<float>(o.clip_norm), .epsilon = 1e-6F, .rescale = 0};
    g.add_into(GPUNN_OP_CLIP_NORM, "clip_norm", Attributes::of(clip), {values.gradients, norm}, {values.gradients});
  }
  return norm;
}

void add_average(Graph& g, double decay, int64_t size, ValueId average, ValueId of) {
  const UpdateRange first{.group = -1, .begin = 0, .end = size, .decayed = 0};
  const ValueId kept = part_of(g, first, average, "average");
  // 1 - alpha is exact in f32. Shares whose sum is not 1 would scale the average: by 0.14 % at 0.99999.
  const auto alpha = static_cast<float>(decay);
  const gpunn_axpby_attrs mix{.struct_size = 0, .alpha = alpha, .beta = 1 - alpha};
  g.add_into(GPUNN_OP_AXPBY, "average", Attributes::of(mix), {kept, part_of(g, first, of, "average")}, {kept});
}

void add_optimizer(Graph& g, const OptimizerConfig& o, const ParameterLayout& layout, const UpdateValues& values) {
  const OptimizerRow& row = config::row_of(optimizer_rows(), o);
  const std::vector<OptimizerState> kinds = optimizer_states(o);
  std::vector<ValueId> states;
  for (const OptimizerState& state : kinds) {
    states.push_back(g.add_value(state.name, layout.state_type(state.arrays()), Storage::optimizer));
  }
  for (std::size_t i = 0; i < layout.ranges.size(); ++i) {
    const UpdateRange& range = layout.ranges[i];
    const GroupUpdate group = group_update(o, range.group);
    const std::string name = range_name(layout, "optimizer", i);
    const auto part = [&](ValueId flat) { return part_of(g, range, flat, name); };
    const auto kept = [&](std::size_t state) {
      const UpdateRange in_states{.begin = range.state_begin, .end = range.state_begin + range.end - range.begin};
      if (kinds[state].rows == 0) return part_of(g, in_states, states[state], name);
      return rows_of(g, in_states, states[state], kinds[state].rows, name);
    };
    ValueId rate = values.rate;
    if (group.rate_factor != 1) {
      const gpunn_scale_attrs scale{.struct_size = 0, .factor = static_cast<float>(group.rate_factor)};
      rate = g.add1(GPUNN_OP_SCALE, name + ".learning_rate", Attributes::of(scale), {rate});
    }
    if (range.matrices) {
      UpdateValues with = values;
      with.rate = rate;
      add_muon(g, o, layout, range, with, states.front());
      continue;
    }
    const Decay decay{.weight = static_cast<float>(group.weight_decay), .elements = range.decayed};
    if (row.formula != nullptr) {
      UpdateInputs in{part(values.parameters), part(values.gradients), rate, values.step, {}, decay};
      for (std::size_t s = 0; s < states.size(); ++s) in.states.push_back(kept(s));
      add_formula(g, name, row.formula, o, in);
      continue;
    }
    std::vector<ValueId> inputs{part(values.parameters), part(values.gradients), rate};
    if (row.counts_steps) inputs.push_back(values.step);
    for (std::size_t s = 0; s < states.size(); ++s) inputs.push_back(kept(s));
    if (row.by_parameter) {
      const auto bounds = static_cast<int64_t>(layout.bounds(range).size());
      inputs.push_back(g.add_value(bounds_variable(i), {DType::i64, {bounds}}, Storage::data));
    }
    g.add(row.op, name, row.attributes(o, decay), inputs);
  }
}

}  // namespace gpunn::training
