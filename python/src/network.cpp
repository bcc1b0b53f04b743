// gpunn::Network: weights in memory.
#include "network.hpp"

#include <gpunn/error.hpp>
#include <gpunn/summary.hpp>

#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errands/process.hpp"
#include "shared_model.hpp"
#include "values/arrays.hpp"
#include "values/settings.hpp"

namespace gpunn::python {

namespace {

// Name, kind, dtype and shape. Without a name or kind: by the shape.
using InputOf = std::tuple<std::string, std::string, std::string, std::vector<int64_t>>;
// Mean and deviation of each input; empty: not known.
using Normalisations = std::vector<std::pair<std::vector<double>, std::vector<double>>>;

DType sample_dtype(const std::string& name) {
  for (const DType type : {DType::u8, DType::f32, DType::i32}) {
    if (name == name_of(type)) return type;
  }
  throw Error("samples are u8, f32 or i32, found '" + name + "'", ExitCode::usage);
}

void set_normalisations(Schema& fields, const Normalisations& given) {
  std::size_t next = 0;
  for (Field& field : fields.fields) {
    if (field.role == Role::input) std::tie(field.mean, field.stddev) = given.at(next++);
  }
}

ModelInfo info_of(const std::vector<InputOf>& inputs, const Normalisations& normalisations,
                  const std::vector<std::string>& outputs) {
  ModelInfo info;
  info.fields.fields.clear();
  for (const auto& [name, kind, dtype, shape] : inputs) {
    Field input{.name = name, .kind = kind, .type = {sample_dtype(dtype), shape}};
    if (name.empty()) input.name = shape.size() == 3 ? "image" : "features";
    info.fields.fields.push_back(std::move(input));
  }
  set_normalisations(info.fields, normalisations);
  info.fields.target().names = outputs;
  return info;
}

nb::dict input_dict(const Field& input) {
  nb::dict result;
  result["name"] = input.name;
  result["kind"] = input.kind;
  result["dtype"] = std::string(name_of(input.type.dtype));
  result["shape"] = nb::cast(input.type.shape);
  result["mean"] = nb::cast(input.mean);
  result["stddev"] = nb::cast(input.stddev);
  return result;
}

nb::dict info_dict(const Network& network) {
  const ModelInfo& info = network.info();
  nb::dict result;
  result["task"] = network.experiment().task;
  nb::list inputs;
  for (const Field* input : info.fields.of(Role::input)) inputs.append(input_dict(*input));
  result["inputs"] = inputs;
  result["outputs"] = nb::cast(info.fields.target().names);
  result["target_mean"] = nb::cast(info.fields.target().mean);
  result["target_stddev"] = nb::cast(info.fields.target().stddev);
  return result;
}

nb::list layers_of(const Experiment& experiment) {
  nb::list result;
  for (const LayerSpec& layer : experiment.model.layers) {
    nb::dict keys;
    for (const LayerParameter& parameter : layer.parameters) {
      keys[nb::str(parameter.name.c_str())] = nb::cast(parameter.values);
    }
    result.append(nb::make_tuple(layer.type, layer.name, nb::cast(layer.from), keys));
  }
  return result;
}

// The name and shape of each input, with its dtype if the model says it; the name and layer of each output.
nb::tuple ends_of(const Experiment& experiment) {
  nb::list inputs, outputs;
  for (const InputSpec& input : experiment.model.inputs) {
    inputs.append(nb::make_tuple(input.name, nb::cast(input.shape),
                                 input.dtype ? std::string(name_of(*input.dtype)) : std::string()));
  }
  for (const OutputSpec& output : experiment.model.outputs) {
    outputs.append(nb::make_tuple(output.name, output.layer));
  }
  return nb::make_tuple(inputs, outputs);
}

}  // namespace

void bind_network(nb::module_& module) {
  nb::class_<PythonNetwork>(module, "Network", "Weights in host memory, and all that a training of them knows.")
      .def(
          "__init__",
          [](PythonNetwork* self, const std::string& text, const std::string& origin,
             const std::vector<InputOf>& inputs, const Normalisations& normalisations,
             const std::vector<std::string>& outputs) {
            new (self) PythonNetwork(Network(parse_experiment(text, origin), info_of(inputs, normalisations, outputs)));
          },
          nb::arg("text"), nb::arg("origin"), nb::arg("inputs"), nb::arg("normalisations"), nb::arg("outputs"))
      .def_static(
          "load", [](const std::filesystem::path& path) { return PythonNetwork(Network::load(path)); }, nb::arg("path"))
      .def(
          "set",
          [](PythonNetwork& self, const std::string& text, const std::string& origin, const Settings& settings,
             const Normalisations& normalisations, const std::vector<std::string>& outputs) {
            const InUse in_use(self, InUse::Kind::writes);
            ModelInfo info = self.network->info();
            set_normalisations(info.fields, normalisations);
            info.fields.target().names = outputs;
            self.network->set(parse_experiment(text, origin, overrides_of(settings)), std::move(info));
          },
          nb::arg("text"), nb::arg("origin"), nb::arg("settings"), nb::arg("normalisations"), nb::arg("outputs"))
      .def("copy",
           [](const PythonNetwork& self) {
             const InUse in_use(self, InUse::Kind::reads);
             return PythonNetwork(*self.network);
           })
      .def("info", [](const PythonNetwork& self) { return info_dict(*self.network); })
      .def("resolved", [](const PythonNetwork& self) { return resolved_yaml(self.network->experiment()); })
      .def("layers", [](const PythonNetwork& self) { return layers_of(self.network->experiment()); })
      .def("ends", [](const PythonNetwork& self) { return ends_of(self.network->experiment()); })
      .def("tensors",
           [](const PythonNetwork& self) {
             nb::list result;
             for (const NetworkTensor& tensor : self.network->tensors()) {
               result.append(nb::make_tuple(tensor.name, tensor.layer, nb::tuple(nb::cast(tensor.shape)), tensor.buffer,
                                            tensor.trainable));
             }
             return result;
           })
      .def(
          "read",
          [](const PythonNetwork& self, const std::string& name) {
            const InUse in_use(self, InUse::Kind::reads);
            const std::span<const float> values = self.network->read(name);
            for (const NetworkTensor& tensor : self.network->tensors()) {
              if (tensor.name == name) {
                return nb::cast(array_of(std::vector<float>(values.begin(), values.end()),
                                         {tensor.shape.begin(), tensor.shape.end()}));
              }
            }
            return nb::object();
          },
          nb::arg("name"))
      .def(
          "write",
          [](PythonNetwork& self, const std::string& name, const Floats& values) {
            const InUse in_use(self, InUse::Kind::writes);
            self.network->write(name, {values.data(), values.size()});
          },
          nb::arg("name"), nb::arg("values"))
      .def(
          "read_file",
          [](PythonNetwork& self, const std::filesystem::path& file, const std::filesystem::path& names, bool strict) {
            const InUse in_use(self, InUse::Kind::writes);
            return self.network->read_file(file, names, strict);
          },
          nb::arg("file"), nb::arg("names"), nb::arg("strict"))
      .def(
          "set_dtypes",
          [](PythonNetwork& self, const std::vector<std::string>& dtypes) {
            const InUse in_use(self, InUse::Kind::writes);
            ModelInfo info = self.network->info();
            std::size_t next = 0;
            for (Field& field : info.fields.fields) {
              if (field.role == Role::input) field.type.dtype = sample_dtype(dtypes.at(next++));
            }
            self.network->set(self.network->experiment(), std::move(info));
          },
          nb::arg("dtypes"), "The types of the inputs.")
      .def_prop_ro("is_prepared", [](const PythonNetwork& self) { return self.network->is_prepared(); })
      .def_prop_ro("learnt_task", [](const PythonNetwork& self) { return self.network->learnt_task(); })
      .def("preparation", [](const PythonNetwork& self) { return self.network->preparation(); })
      .def(
          "take_preparation",
          [](PythonNetwork& self, const std::string& description) {
            const InUse in_use(self, InUse::Kind::writes);
            return self.network->take_preparation(description);
          },
          nb::arg("description"))
      .def_prop_ro("steps", [](const PythonNetwork& self) { return self.network->steps(); })
      .def_prop_ro("epochs", [](const PythonNetwork& self) { return self.network->epochs(); })
      .def("forget_training",
           [](PythonNetwork& self) {
             const InUse in_use(self, InUse::Kind::writes);
             self.network->forget_training();
           })
      .def(
          "save",
          [](const PythonNetwork& self, const std::filesystem::path& file) {
            const InUse in_use(self, InUse::Kind::reads);
            const Unlocked released;
            const AtWork at_work;
            self.network->save(file);
          },
          nb::arg("file"))
      .def("train", &train, nb::arg("samples"), nb::arg("targets").none(), nb::arg("weights").none(),
           nb::arg("val_samples").none(), nb::arg("val_targets").none(), nb::arg("next").none(), nb::arg("rows"),
           nb::arg("listener"), nb::arg("run_folder"), nb::arg("rounded_to"))
      .def("evaluate", &evaluate, nb::arg("samples"), nb::arg("targets"), nb::arg("weights").none())
      .def(
          "model",
          [](const PythonNetwork& self, int64_t max_batch) {
            const InUse in_use(self, InUse::Kind::reads);
            const Unlocked released;
            const AtWork at_work;
            return SharedModel(self.network->model({.max_batch = max_batch}));
          },
          nb::arg("max_batch"), "Its answers, with the weights of this moment.");

  module.def(
      "summarize",
      [](const std::string& text, const std::string& origin, const std::vector<int64_t>& shape) {
        return summarize(parse_experiment(text, origin), shape);
      },
      nb::arg("text"), nb::arg("origin"), nb::arg("shape"));
  module.def(
      "read_model",
      [](const std::string& text, const std::string& origin) {
        const Experiment experiment = parse_experiment(text, origin);
        return nb::make_tuple(experiment.model.name, ends_of(experiment), layers_of(experiment));
      },
      nb::arg("text"), nb::arg("origin"), "The name, ends and layers of an experiment's model, blocks taken apart.");
}

}  // namespace gpunn::python
