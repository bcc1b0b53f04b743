#include <gpunn/data.hpp>
#include <gpunn/error.hpp>
#include <gpunn/experiment.hpp>

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "values/arrays.hpp"
#include "values/record.hpp"

namespace gpunn::python {

namespace {

using AnyArray = nb::ndarray<nb::numpy>;

template <typename T>
AnyArray copied(const TensorType& type, std::span<const std::byte> values) {
  NewArray<T> array({type.shape.begin(), type.shape.end()});
  if (!values.empty()) std::memcpy(array.data(), values.data(), values.size());
  return AnyArray(array.release().handle());
}

AnyArray array_of_bytes(const TensorType& type, std::span<const std::byte> values) {
  if (type.dtype == DType::u8) return copied<uint8_t>(type, values);
  if (type.dtype == DType::i32) return copied<int32_t>(type, values);
  return type.dtype == DType::f64 ? copied<double>(type, values) : copied<float>(type, values);
}

AnyArray samples_of(const Split& split) {
  if (split.source != nullptr) {
    throw Error(
        "these samples are decoded from their files each time they are wanted; set data.decode: once to have "
        "them as an array",
        ExitCode::usage);
  }
  return array_of_bytes(split.samples, split.sample_bytes());
}

AnyArray targets_of(const Dataset& set, const Split& split) {
  const auto found = split.fields.find(set.fields.target().name);
  if (found != split.fields.end()) return array_of_bytes(found->second.type, found->second.bytes());
  return AnyArray(array_of(std::vector<int32_t>(), {0}).handle());
}

}  // namespace

void bind_data(nb::module_& module) {
  Record<DatasetInfo>(module, "DatasetInfo", "A data set that experiments may name.")
      .field("name", &DatasetInfo::name)
      .field("description", &DatasetInfo::description)
      .field("synthetic", &DatasetInfo::synthetic, "Drawn by gpunn: it needs no files.")
      .field("users_own", &DatasetInfo::users_own, "Read from data.path.")
      .computed(
          "found",
          [](const DatasetInfo& info) {
            return info.found.empty() ? std::nullopt : std::optional<std::filesystem::path>(info.found);
          },
          "Its folder; None: it is not on this machine.")
      .field("searched", &DatasetInfo::searched);
  module.def(
      "list_datasets", [] { return on_errand(false, [](Errand&) { return list_datasets(); }); },
      "The data sets that experiments may name.");
  module.def(
      "download_dataset",
      [](const std::string& name) { return on_errand(false, [name](Errand&) { return download_dataset(name); }); },
      nb::arg("name"), "Fetches a data set into the user's cache folder, and returns that.");
  nb::class_<Dataset>(module, "Dataset", "A data set in host memory, as numpy arrays that are copies.")
      .def_ro("name", &Dataset::name)
      .def_ro("source", &Dataset::source)
      .def_prop_ro("class_names", [](const Dataset& set) { return set.fields.target().names; })
      .def_prop_ro("fields", [](const Dataset& set) { return set.fields.fields; })
      .def_prop_ro(
          "columns", [](const Dataset& set) { return set.fields.input().names; },
          "The names of the features; empty: they have none.")
      .def_prop_ro(
          "x_train", [](const Dataset& d) { return samples_of(d.train); }, nb::rv_policy::automatic,
          "uint8, float32 or float64 [rows, C, H, W] or [rows, features].")
      .def_prop_ro(
          "y_train", [](const Dataset& d) { return targets_of(d, d.train); }, nb::rv_policy::automatic,
          "Classes, int32 [rows]; [rows, outputs] of numbers, float64, or labels, float32; or label maps, uint8 "
          "[rows, H, W].")
      .def_prop_ro(
          "x_test", [](const Dataset& d) { return samples_of(d.test); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "y_test", [](const Dataset& d) { return targets_of(d, d.test); }, nb::rv_policy::automatic);
  module.def(
      "load_dataset",
      [](const Experiment& experiment) {
        return on_errand(false, [config = experiment.data](Errand&) { return load_dataset(config); });
      },
      nb::arg("experiment"), "The data set of an experiment.");
}

}  // namespace gpunn::python
