// Whether a module of PyTorch is called as it was before: the quick part of a call, which Python would take longer for
// than a small kernel.
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "eager_arrays.hpp"

namespace gpunn::python {

namespace {

// A function that says how PyTorch or gpunn is set, and its answer then.
struct Condition {
  nb::object function;
  nb::tuple arguments;
  nb::object expected;
};

// An entry of the module's dictionary and its value then.
struct Setting {
  nb::object name, expected;
};

bool equal(nb::handle a, nb::handle b) {
  if (a.is(b)) return true;
  const int same = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (same < 0) nb::raise_python_error();
  return same != 0;
}

// A borrowed entry of a dictionary, or a null handle.
nb::handle entry_of(nb::handle dictionary, nb::handle name) {
  PyObject* const found = PyDict_GetItemWithError(dictionary.ptr(), name.ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return found;
}

class ModuleCall {
 public:
  // `guard`: whether tensors have the types of those then. `tensors`: (dictionary in the module's, name) of each after
  // the input. `settings`: (name, value). `conditions`: (function, arguments, answer).
  ModuleCall(nb::object guard, nb::handle tensors, nb::handle settings, nb::handle conditions)
      : guard_(std::move(guard)) {
    for (nb::handle one : tensors) tensors_.emplace_back(nb::object(one[0]), nb::object(one[1]));
    for (nb::handle one : settings) settings_.push_back({one[0], one[1]});
    for (nb::handle one : conditions) conditions_.push_back({one[0], nb::tuple(one[1]), one[2]});
  }

  // The input and the module's tensors, or None if anything is otherwise than it was.
  nb::object match(nb::handle dictionary, nb::handle input) const {
    for (const Condition& one : conditions_) {
      const nb::object answer = nb::steal(PyObject_Call(one.function.ptr(), one.arguments.ptr(), nullptr));
      if (!answer.is_valid()) nb::raise_python_error();
      if (!equal(answer, one.expected)) return nb::none();
    }
    for (const Setting& one : settings_) {
      const nb::handle value = entry_of(dictionary, one.name);
      if (!value.is_valid() || !equal(value, one.expected)) return nb::none();
    }
    nb::object found = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors_.size()) + 1));
    PyTuple_SetItem(found.ptr(), 0, nb::borrow(input).release().ptr());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const nb::handle of = entry_of(dictionary, tensors_[i].first);
      const nb::handle one = of.is_valid() ? entry_of(of, tensors_[i].second) : nb::handle();
      if (!one.is_valid()) return nb::none();
      PyTuple_SetItem(found.ptr(), static_cast<Py_ssize_t>(i) + 1, nb::borrow(one).release().ptr());
    }
    const nb::object same = nb::steal(PyObject_Call(guard_.ptr(), found.ptr(), nullptr));
    if (!same.is_valid()) nb::raise_python_error();
    return same.ptr() == Py_True ? found : nb::none();
  }

 private:
  nb::object guard_;
  std::vector<std::pair<nb::object, nb::object>> tensors_;
  std::vector<Setting> settings_;
  std::vector<Condition> conditions_;
};

}  // namespace

void bind_module_call(nb::module_& module) {
  nb::class_<ModuleCall>(module, "ModuleCall", "A call of a module of PyTorch, to be recognised.")
      .def(nb::init<nb::object, nb::handle, nb::handle, nb::handle>(), nb::arg("guard"), nb::arg("tensors"),
           nb::arg("settings"), nb::arg("conditions"))
      .def("match", &ModuleCall::match, nb::arg("dictionary"), nb::arg("input"),
           "The input and the module's tensors, or None if anything is otherwise than it was.");
}

}  // namespace gpunn::python
