#include "calls/eager_arrays.hpp"

#include <gpunn/error.hpp>

#include <string>

namespace gpunn::python {

int64_t integer(PyObject* value) {
  const long long number = PyLong_AsLongLong(value);
  if (number == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return number;
}

Shape shape_of(nb::handle sizes) {
  Shape shape;
  const Py_ssize_t rank = PyTuple_Size(sizes.ptr());
  if (rank < 0) nb::raise_python_error();
  for (Py_ssize_t i = 0; i < rank; ++i) shape.push_back(integer(PyTuple_GetItem(sizes.ptr(), i)));
  return shape;
}

namespace {

// How the strides lie. Those of dimensions of size 1, and all of an array without elements, say nothing.
Layout layout_of(const TensorType& type, nb::handle strides) {
  if (strides.is_none()) return Layout::packed;
  const Shape given = shape_of(strides);
  const auto lies = [&](Layout layout) {
    TensorType wanted = type;
    wanted.layout = layout;
    const std::vector<int64_t> expected = strides_of(wanted);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (type.shape[i] != 1 && given[i] != expected[i]) return false;
    }
    return true;
  };
  if (given.size() != type.shape.size()) throw Error("strides and shape differ in length", ExitCode::usage);
  if (type.elements() == 0 || lies(Layout::packed)) return Layout::packed;
  if (has_layouts(type) && lies(Layout::channels_last)) return Layout::channels_last;
  throw Error("an array " + to_string(type) + " with strides " + to_string(given) +
                  " is neither packed row-major nor channels-last; copy it first",
              ExitCode::usage);
}

TensorType type_of(nb::handle tuple) {
  TensorType type{static_cast<DType>(integer(PyTuple_GetItem(tuple.ptr(), 1))),
                  shape_of(PyTuple_GetItem(tuple.ptr(), 2))};
  type.layout = layout_of(type, PyTuple_GetItem(tuple.ptr(), 3));
  return type;
}

}  // namespace

eager::Array array_of(nb::handle tuple) {
  if (!PyTuple_Check(tuple.ptr()) || PyTuple_Size(tuple.ptr()) != 4) {
    throw Error("an array is a tuple (address, dtype, shape, strides)", ExitCode::usage);
  }
  void* const data = PyLong_AsVoidPtr(PyTuple_GetItem(tuple.ptr(), 0));
  if (data == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return {type_of(tuple), data};
}

std::vector<eager::Array> arrays_of(nb::handle list) {
  std::vector<eager::Array> arrays;
  for (nb::handle one : list) arrays.push_back(array_of(one));
  return arrays;
}

std::vector<TensorType> types_of(nb::handle list) {
  std::vector<TensorType> types;
  for (nb::handle one : list) types.push_back(array_of(one).type);
  return types;
}

std::vector<bool> flags_of(nb::handle list) {
  std::vector<bool> flags;
  for (nb::handle one : list) flags.push_back(nb::cast<bool>(one));
  return flags;
}

}  // namespace gpunn::python
