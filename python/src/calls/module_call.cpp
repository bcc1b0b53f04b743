// Recognises a call of a PyTorch module that gpunn has seen before. In Python this would take longer than a small
// kernel.
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "calls/eager_arrays.hpp"

namespace gpunn::python {

namespace {

// A function of PyTorch or gpunn that returns a setting, and its answer then.
struct Condition {
  nb::object function;
  nb::tuple arguments;
  nb::object expected;
};

// An entry of a dictionary that belongs to neither the call nor the module, and its value then.
struct Watched {
  nb::object dictionary, name, expected;
};

// An entry of the module's dictionary. The value counts only if the module's class can read it.
struct Attribute {
  nb::object name, expected;
  bool counts = false;
};

// An entry of the module's parameters or buffers.
struct Stored {
  nb::object name;
  bool present = false;
  int place = -1;  // among the tensors of the call
};

bool equal(nb::handle a, nb::handle b) {
  if (a.is(b)) return true;
  // 1 == True, and yet PyTorch treats them differently.
  if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr())) return false;
  const int same = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (same < 0) nb::raise_python_error();
  return same != 0;
}

// Whether a look at an attribute found False. It clears the error of a look that failed.
bool is_false(const nb::object& found) {
  if (!found.is_valid()) PyErr_Clear();
  return found.ptr() == Py_False;
}

// A borrowed entry of a dictionary, or a null handle.
nb::handle entry_of(nb::handle dictionary, nb::handle name) {
  PyObject* const found = PyDict_GetItemWithError(dictionary.ptr(), name.ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return found;
}

// Calls `visit(i, name, value)` for each entry, in order. False if there are not `count` of them or a visit says so.
template <typename Visit>
bool all_entries(nb::handle dictionary, std::size_t count, Visit visit) {
  if (!PyDict_Check(dictionary.ptr()) || static_cast<std::size_t>(PyDict_Size(dictionary.ptr())) != count) return false;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t at = 0;
  for (std::size_t i = 0; PyDict_Next(dictionary.ptr(), &at, &name, &value) != 0; ++i) {
    if (!visit(i, nb::handle(name), nb::handle(value))) return false;
  }
  return true;
}

class ModuleCall {
 public:
  // `guard`: whether tensors have the types of the tensors then. `attributes`: (name, value, whether it counts) of all
  // entries of the module's dictionary, in order. `parameters` and `buffers`: (name, present, place) likewise.
  // `watched`: (dictionary, name, value). `conditions`: (function, arguments, answer).
  ModuleCall(nb::object guard, std::size_t count, nb::handle attributes, nb::handle parameters, nb::handle buffers,
             nb::handle watched, nb::handle conditions)
      : guard_(std::move(guard)),
        count_(count),
        parameters_name_(nb::steal(PyUnicode_InternFromString("_parameters"))),
        buffers_name_(nb::steal(PyUnicode_InternFromString("_buffers"))),
        is_nested_name_(nb::steal(PyUnicode_InternFromString("is_nested"))) {
    for (nb::handle one : attributes) attributes_.push_back({one[0], one[1], nb::cast<bool>(one[2])});
    for (nb::handle one : parameters) parameters_.push_back(stored(one));
    for (nb::handle one : buffers) buffers_.push_back(stored(one));
    for (nb::handle one : watched) watched_.push_back({one[0], one[1], one[2]});
    for (nb::handle one : conditions) conditions_.push_back({one[0], nb::tuple(one[1]), one[2]});
  }

  // The input and the module's tensors, or None if anything differs from then.
  nb::object match(nb::handle dictionary, nb::handle input) const {
    for (const Condition& one : conditions_) {
      const nb::object answer = nb::steal(PyObject_Call(one.function.ptr(), one.arguments.ptr(), nullptr));
      if (!answer.is_valid()) nb::raise_python_error();
      if (!equal(answer, one.expected)) return nb::none();
    }
    for (const Watched& one : watched_) {
      const nb::handle value = entry_of(one.dictionary, one.name);
      if (!value.is_valid() || !equal(value, one.expected)) return nb::none();
    }
    if (!has_the_attributes(dictionary)) return nb::none();
    nb::object found = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count_)));
    PyTuple_SetItem(found.ptr(), 0, nb::borrow(input).release().ptr());
    if (!collect(entry_of(dictionary, parameters_name_), parameters_, found) ||
        !collect(entry_of(dictionary, buffers_name_), buffers_, found)) {
      return nb::none();
    }
    // The guard throws for a nested tensor, which has no sizes.
    if (!is_false(nb::steal(PyObject_GetAttr(input.ptr(), is_nested_name_.ptr())))) return nb::none();
    const nb::object same = nb::steal(PyObject_Call(guard_.ptr(), found.ptr(), nullptr));
    if (!same.is_valid()) nb::raise_python_error();
    return same.ptr() == Py_True ? found : nb::none();
  }

 private:
  static Stored stored(nb::handle one) { return {one[0], nb::cast<bool>(one[1]), nb::cast<int>(one[2])}; }

  bool has_the_attributes(nb::handle dictionary) const {
    return all_entries(dictionary, attributes_.size(), [&](std::size_t i, nb::handle name, nb::handle value) {
      const Attribute& one = attributes_[i];
      return equal(name, one.name) && (!one.counts || equal(value, one.expected));
    });
  }

  bool collect(nb::handle dictionary, const std::vector<Stored>& stored, const nb::object& into) const {
    if (!dictionary.is_valid()) return false;
    return all_entries(dictionary, stored.size(), [&](std::size_t i, nb::handle name, nb::handle value) {
      const Stored& one = stored[i];
      if (!equal(name, one.name) || value.is_none() == one.present) return false;
      if (one.place >= 0) PyTuple_SetItem(into.ptr(), one.place, nb::borrow(value).release().ptr());
      return true;
    });
  }

  nb::object guard_;
  std::size_t count_;  // of the tensors
  nb::object parameters_name_, buffers_name_, is_nested_name_;
  std::vector<Attribute> attributes_;
  std::vector<Stored> parameters_, buffers_;
  std::vector<Watched> watched_;
  std::vector<Condition> conditions_;
};

}  // namespace

void bind_module_call(nb::module_& module) {
  nb::class_<ModuleCall>(module, "ModuleCall", "A call of a module of PyTorch, to be recognised.")
      .def(nb::init<nb::object, std::size_t, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(),
           nb::arg("guard"), nb::arg("count"), nb::arg("attributes"), nb::arg("parameters"), nb::arg("buffers"),
           nb::arg("watched"), nb::arg("conditions"))
      .def("match", &ModuleCall::match, nb::arg("dictionary"), nb::arg("input").none(),
           "The input and the module's tensors, or None if anything differs from then.");
}

}  // namespace gpunn::python
