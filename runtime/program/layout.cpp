#include "program/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace gpunn::training {

int64_t ParameterLayout::count() const {
  int64_t result = 0;
  for (const nn::Parameter& parameter : parameters) result += element_count(parameter.shape);
  return result;
}

int64_t ParameterLayout::trained_count() const {
  int64_t result = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!rules[i].frozen) result += element_count(parameters[i].shape);
  }
  return result;
}

std::vector<int64_t> ParameterLayout::bounds(const UpdateRange& range) const {
  std::vector<int64_t> result;
  for (const int64_t place : offset) {
    if (place >= range.begin && place < range.end) result.push_back(place - range.begin);
  }
  std::ranges::sort(result);
  result.push_back(range.end - range.begin);
  return result;
}

uint64_t parameter_alignment(Precision precision, uint64_t alignment) {
  return half_of(precision) ? 2 * alignment : alignment;
}

ParameterLayout lay_out(std::vector<nn::Parameter> parameters, std::vector<UpdateRule> rules, uint64_t alignment,
                        int64_t ranks) {
  const int64_t step = std::max<int64_t>(static_cast<int64_t>(alignment / sizeof(float)), 1);
  ParameterLayout layout;
  layout.offset.resize(parameters.size());
  // Of the parameters that are wanted, one behind the other.
  const auto place = [&](const auto& wanted) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!wanted(rules[i])) continue;
      layout.offset[i] = layout.total;
      const int64_t elements = element_count(parameters[i].shape);
      layout.total += (elements + step - 1) / step * step;
    }
  };
  int groups = 0;
  for (const UpdateRule& rule : rules) groups = std::max(groups, rule.group + 1);
  for (int group = -1; group < groups; ++group) {
    for (const bool matrices : {true, false}) {
      UpdateRange range{.group = group,
                        .begin = layout.total,
                        .end = 0,
                        .decayed = 0,
                        .matrices = matrices,
                        .state_begin = layout.total};
      const auto of = [group, matrices](bool decays) {
        return [group, matrices, decays](const UpdateRule& r) {
          return !r.frozen && r.group == group && r.matrix == matrices && r.decays == decays;
        };
      };
      place(of(true));
      range.decayed = layout.total - range.begin;
      place(of(false));
      range.end = layout.total;
      if (range.end > range.begin) layout.ranges.push_back(range);
    }
  }
  layout.multiple = ranks > 1 ? ranks * step : 1;
  layout.total = (layout.total + layout.multiple - 1) / layout.multiple * layout.multiple;
  if (!layout.ranges.empty()) layout.ranges.back().end = layout.total;
  layout.trained = layout.kept = layout.total;
  place([](const UpdateRule& rule) { return rule.frozen; });
  layout.parameters = std::move(parameters);
  layout.rules = std::move(rules);
  return layout;
}

ParameterLayout lay_out(std::vector<nn::Parameter> parameters, uint64_t alignment) {
  std::vector<UpdateRule> rules(parameters.size());
  for (std::size_t i = 0; i < rules.size(); ++i) rules[i].decays = parameters[i].decayed;
  return lay_out(std::move(parameters), std::move(rules), alignment);
}

std::vector<graph::ValueId> add_parameter_views(graph::Graph& graph, const ParameterLayout& layout,
                                                graph::ValueId flat) {
  std::vector<graph::ValueId> views;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const nn::Parameter& parameter = layout.parameters[i];
    views.push_back(graph.add_view(parameter.name, flat, {DType::f32, parameter.shape},
                                   layout.offset[i] * static_cast<int64_t>(sizeof(float))));
  }
  return views;
}

}  // namespace gpunn::training
