// What may be written in experiments and models, as the C++ tables have it.
#include <gpunn/vocabulary.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"

namespace gpunn::python {

namespace {

nb::dict as_dict(const KeyInfo& key) {
  nb::dict result;
  result["path"] = key.path;
  result["value"] = key.value;
  result["default"] = key.fallback;
  result["help"] = key.help;
  result["choices"] = nb::cast(key.choices);
  return result;
}

nb::list as_list(const std::vector<KeyInfo>& keys) {
  nb::list result;
  for (const KeyInfo& key : keys) result.append(as_dict(key));
  return result;
}

}  // namespace

void bind_vocabulary(nb::module_& module) {
  module.def("layer_types", [] {
    nb::list result;
    for (const LayerInfo& layer : layer_types()) {
      nb::dict one;
      one["name"] = layer.name;
      one["help"] = layer.help;
      one["keys"] = as_list(layer.keys);
      one["inputs"] = layer.inputs;
      one["most_inputs"] = layer.most_inputs;
      result.append(one);
    }
    return result;
  });
  module.def("experiment_keys", [] { return as_list(experiment_keys()); });
}

}  // namespace gpunn::python
