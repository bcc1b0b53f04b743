#include "training/layout.hpp"

#include <algorithm>

namespace gpunn::training {

int64_t ParameterLayout::count() const {
  int64_t result = 0;
  for (const nn::Parameter& parameter : parameters) result += element_count(parameter.shape);
  return result;
}

ParameterLayout lay_out(std::vector<nn::Parameter> parameters, uint64_t alignment) {
  const int64_t step = std::max<int64_t>(static_cast<int64_t>(alignment / sizeof(float)), 1);
  ParameterLayout layout;
  layout.offset.resize(parameters.size());
  for (const bool decayed : {true, false}) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].decayed != decayed) continue;
      layout.offset[i] = layout.total;
      const int64_t elements = element_count(parameters[i].shape);
      layout.total += (elements + step - 1) / step * step;
    }
    if (decayed) layout.decayed = layout.total;
  }
  layout.parameters = std::move(parameters);
  return layout;
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
