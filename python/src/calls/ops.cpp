// Single ops on arrays of the caller. Arrays come as tuples (address, dtype, shape, strides or None); the package makes
// these of NumPy's arrays, PyTorch's tensors and what else speaks DLPack.
#include <gpunn/error.hpp>
#include <gpunn/ops.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "calls/eager_arrays.hpp"
#include "errands/process.hpp"
#include "values/arrays.hpp"

namespace gpunn::python {

namespace {

using eager::Array;
using eager::AttributeValue;
using eager::CallerStream;
using eager::Engine;
using eager::NamedAttribute;
using eager::Op;

// --- From Python ---

// A seed may have 64 bits.
int64_t attribute_integer(nb::handle value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0) return number;
  const unsigned long long whole = PyLong_AsUnsignedLongLong(value.ptr());
  if (PyErr_Occurred() == nullptr) return static_cast<int64_t>(whole);
  PyErr_Clear();
  throw Error("the integer " + std::string(nb::str(value).c_str()) + " does not fit into 64 bits", ExitCode::usage);
}

AttributeValue attribute_value(nb::handle value) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (PyLong_Check(value.ptr())) return attribute_integer(value);
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  bool whole = true;
  for (nb::handle one : value) {
    whole = whole && PyLong_Check(one.ptr());
    if (whole) integers.push_back(attribute_integer(one));
    numbers.push_back(nb::cast<double>(one));
  }
  if (whole) return integers;
  return numbers;
}

Op make_op(const std::string& name, const nb::dict& attributes) {
  std::vector<NamedAttribute> values;
  for (const auto& [key, value] : attributes) values.emplace_back(nb::cast<std::string>(key), attribute_value(value));
  return Op(name, values);
}

// --- To Python ---

nb::object value_object(const AttributeValue& value) {
  return std::visit([](const auto& one) -> nb::object { return nb::cast(one); }, value);
}

nb::list dtype_list(const std::vector<DType>& dtypes) {
  nb::list list;
  for (const DType dtype : dtypes) list.append(std::string(name_of(dtype)));
  return list;
}

nb::list tensor_list(const std::vector<eager::TensorInfo>& tensors) {
  nb::list list;
  for (const eager::TensorInfo& one : tensors) {
    nb::dict entry;
    entry["name"] = one.name;
    entry["shape"] = one.shape;
    entry["dtypes"] = dtype_list(one.dtypes);
    entry["floating"] = one.floating;
    entry["optional"] = one.optional;
    entry["repeated"] = one.repeated;
    entry["in_place"] = one.in_place;
    list.append(entry);
  }
  return list;
}

nb::list attribute_list(const std::vector<eager::AttributeInfo>& attributes) {
  nb::list list;
  for (const eager::AttributeInfo& one : attributes) {
    nb::dict entry;
    entry["name"] = one.name;
    entry["kind"] = std::string(eager::name_of(one.kind));
    entry["help"] = one.help;
    entry["range"] = one.range;
    entry["required"] = !one.fallback && one.same_as.empty();
    entry["default"] = one.fallback ? value_object(*one.fallback) : nb::none();
    entry["same_as"] = one.same_as;
    entry["choices"] = one.choices;
    list.append(entry);
  }
  return list;
}

nb::list catalogue_list() {
  nb::list list;
  for (const eager::OpDescription& one : eager::catalogue()) {
    nb::dict entry;
    entry["name"] = one.name;
    entry["signature"] = one.signature;
    entry["summary"] = one.summary;
    entry["inputs"] = tensor_list(one.inputs);
    entry["outputs"] = tensor_list(one.outputs);
    entry["attributes"] = attribute_list(one.attributes);
    entry["differentiable"] = one.differentiable;
    list.append(entry);
  }
  return list;
}

nb::tuple shape_tuple(const Shape& shape) {
  nb::list sizes;
  for (const int64_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

nb::list type_list(const std::vector<TensorType>& types) {
  nb::list list;
  for (const TensorType& type : types) {
    list.append(nb::make_tuple(static_cast<int>(type.dtype), shape_tuple(type.shape)));
  }
  return list;
}

nb::dict statistics_of(const Engine& engine) {
  const eager::PoolStatistics one = engine.pool_statistics();
  nb::dict entry;
  entry["requests"] = one.requests;
  entry["hits"] = one.hits;
  entry["used_bytes"] = one.used_bytes;
  entry["held_bytes"] = one.held_bytes;
  entry["peak_bytes"] = one.peak_bytes;
  return entry;
}

Engine open_engine(const std::string& backend, int device, int threads, const std::string& precision,
                   bool deterministic, bool alternatives, const std::vector<std::string>& plugins,
                   const std::vector<std::string>& kernels) {
  eager::EngineOptions options{.backend = backend,
                               .device = device,
                               .threads = threads,
                               .deterministic = deterministic,
                               .alternatives = alternatives,
                               .plugins = {plugins.begin(), plugins.end()},
                               .kernels = kernels};
  const std::pair<const char*, Precision> precisions[] = {
      {"fp32", Precision::fp32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}, {"f16", Precision::f16}};
  const auto found = std::ranges::find_if(precisions, [&](const auto& one) { return precision == one.first; });
  if (found == std::end(precisions)) {
    throw Error("precision must be fp32, tf32, bf16 or f16, is '" + precision + "'", ExitCode::usage);
  }
  options.precision = found->second;
  const Unlocked released;
  const AtWork at_work;
  return Engine::open(options);
}

// --- Results in memory of the pool ---

// Memory of the pool as a tensor. Whoever takes it by DLPack keeps it alive.
class PoolTensor {
 public:
  PoolTensor(const Engine& engine, TensorType type, uintptr_t stream, int device)
      : memory_(
            std::make_shared<eager::Memory>(engine.allocate(type.bytes(), CallerStream{.native = pointer(stream)}))),
        type_(std::move(type)),
        host_(engine.on_host()),
        device_(device),
        stream_(stream) {}

  const TensorType& type() const { return type_; }
  uintptr_t address() const { return reinterpret_cast<uintptr_t>(memory_->data()); }
  bool on_host() const { return host_; }
  int device() const { return device_; }

  // A capsule of DLPack. `reader`, where given, is the stream that reads it.
  nb::object share(std::optional<uintptr_t> reader) const {
    struct Share {
      std::shared_ptr<eager::Memory> memory;
      std::optional<uintptr_t> reader;
    };
    if (reader && *reader != stream_) memory_->hand_to(pointer(*reader));
    auto* const kept = new Share{memory_, reader && *reader != stream_ ? reader : std::nullopt};
    nb::capsule owner(kept, [](void* data) noexcept {
      const std::unique_ptr<Share> share(static_cast<Share*>(data));
      try {
        if (share->reader) share->memory->released_by(pointer(*share->reader));
      } catch (const std::exception&) {  // a lost device reads nothing
      }
    });
    std::vector<std::size_t> sizes(type_.shape.begin(), type_.shape.end());
    return nb::cast(nb::ndarray<>(memory_->data(), sizes.size(), sizes.data(), owner, nullptr, dlpack_of(type_.dtype),
                                  host_ ? nb::device::cpu::value : nb::device::cuda::value, device_),
                    nb::rv_policy::reference);
  }

 private:
  std::shared_ptr<eager::Memory> memory_;
  TensorType type_;
  bool host_;
  int device_;
  uintptr_t stream_;
};

// An array that speaks DLPack, or a capsule of one: (address, dtype, shape, strides), device type, device, and what
// keeps it alive.
nb::object describe(nb::handle array) {
  const auto view = nb::cast<nb::ndarray<nb::ro>>(array);
  int dtype = -1;
  for (const DType one : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::bf16, DType::f16}) {
    if (view.dtype() == dlpack_of(one)) dtype = static_cast<int>(one);
  }
  nb::list sizes, strides;
  for (std::size_t i = 0; i < view.ndim(); ++i) {
    sizes.append(view.shape(i));
    strides.append(view.stride(i));
  }
  return nb::make_tuple(
      nb::make_tuple(reinterpret_cast<uintptr_t>(view.data()), dtype, nb::tuple(sizes), nb::tuple(strides)),
      view.device_type(), view.device_id(), nb::cast(view));
}

}  // namespace

void bind_ops(nb::module_& module) {
  // PyTorch keeps the functions that are registered with it, and what they refer to, until the process ends.
  nb::set_leak_warnings(false);
  module.def("op_catalogue", &catalogue_list, "Every op: a dict each.");
  module.def("describe_array", &describe, nb::arg("array"));

  nb::class_<Op>(module, "Op", "An op whose attributes are settled.")
      .def(
          "__init__",
          [](Op* self, const std::string& name, const nb::dict& attributes) {
            new (self) Op(make_op(name, attributes));
          },
          nb::arg("name"), nb::arg("attributes"))
      .def(
          "output_types", [](const Op& op, nb::handle inputs) { return type_list(op.output_types(types_of(inputs))); },
          nb::arg("inputs"), "(dtype, shape) of each output.")
      .def(
          "gradient_needs",
          [](const Op& op, nb::handle inputs, nb::handle wanted) {
            const eager::GradientNeeds needs = op.gradient_needs(types_of(inputs), flags_of(wanted));
            return nb::make_tuple(nb::cast(needs.inputs), nb::cast(needs.outputs));
          },
          nb::arg("inputs"), nb::arg("wanted"));

  nb::class_<PoolTensor>(module, "PoolTensor", "Device memory of an engine's pool, as a tensor.")
      .def_prop_ro("shape", [](const PoolTensor& t) { return shape_tuple(t.type().shape); })
      .def_prop_ro("dtype", [](const PoolTensor& t) { return static_cast<int>(t.type().dtype); })
      .def_prop_ro("address", &PoolTensor::address)
      .def_prop_ro("on_host", &PoolTensor::on_host)
      .def_prop_ro("device", &PoolTensor::device)
      .def("share", &PoolTensor::share, nb::arg("reader") = nb::none());

  nb::class_<Engine>(module, "Engine", "A chain of plugins that is opened on a device.")
      .def_static("open", &open_engine, nb::arg("backend"), nb::arg("device") = 0, nb::arg("threads") = 0,
                  nb::arg("precision") = "fp32", nb::arg("deterministic") = false, nb::arg("alternatives") = true,
                  nb::arg("plugins") = std::vector<std::string>{}, nb::arg("kernels") = std::vector<std::string>{})
      .def_prop_ro("name", &Engine::name)
      .def_prop_ro("chain", &Engine::chain)
      .def_prop_ro("device", &Engine::device)
      .def_prop_ro("memory_domain", &Engine::memory_domain)
      .def_prop_ro("on_host", &Engine::on_host)
      .def_prop_ro("alignment", &Engine::alignment)
      .def_prop_ro("plans", &Engine::plans)
      .def("pool_statistics", &statistics_of)
      .def("trim_pool", &Engine::trim_pool, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "explain",
          [](const Engine& engine, const Op& op, nb::handle inputs, nb::handle outputs) {
            const std::vector<Array> in = arrays_of(inputs), out = arrays_of(outputs);
            const Unlocked released;
            const AtWork at_work;
            return engine.explain(op, in, out);
          },
          nb::arg("op"), nb::arg("inputs"), nb::arg("outputs"), "The kernels of a call.")
      .def(
          "allocate",
          [](const Engine& engine, int dtype, nb::handle shape, uintptr_t stream, int device) {
            return PoolTensor(engine, {static_cast<DType>(dtype), shape_of(shape)}, stream, device);
          },
          nb::arg("dtype"), nb::arg("shape"), nb::arg("stream") = 0, nb::arg("device") = 0)
      .def(
          "synchronize",
          [](const Engine& engine, uintptr_t stream) {
            const Unlocked released;
            const AtWork at_work;
            engine.synchronize({.native = pointer(stream)});
          },
          nb::arg("stream") = 0)
      .def(
          "__eq__",
          [](const Engine& a, nb::handle b) { return nb::isinstance<Engine>(b) && a == nb::cast<const Engine&>(b); },
          nb::is_operator())
      .def("__hash__", [](const Engine& engine) { return nb::hash(nb::str(engine.name().c_str())); });
  bind_call(module);
  bind_tensor_call(module);
  bind_module_call(module);
}

}  // namespace gpunn::python
