// gpunn::Error becomes an exception of gpunn.errors, whose classes are written in Python.
#include <gpunn/error.hpp>

#include <exception>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"

namespace gpunn::python {

namespace {

const char* class_of(const Error& error) {
  if (dynamic_cast<const ConfigError*>(&error) != nullptr) return "ConfigError";
  if (dynamic_cast<const DeviceLostError*>(&error) != nullptr) return "DeviceLostError";
  switch (error.code()) {
    case ExitCode::usage:
      return "UsageError";
    case ExitCode::missing:
      return "MissingError";
    case ExitCode::diverged:
      return "DivergedError";
    default:
      return "Error";
  }
}

nb::object diagnostics_of(const ConfigError& error, const nb::module_& errors) {
  nb::list all;
  for (const Diagnostic& one : error.diagnostics()) {
    all.append(errors.attr("Diagnostic")(one.where.file, one.where.line, one.where.column, one.message));
  }
  return all;
}

// Sets Python's error indicator.
void raise(const Error& error) {
  const nb::module_ errors = nb::module_::import_("gpunn.errors");
  const nb::object type = errors.attr(class_of(error));
  const auto* config = dynamic_cast<const ConfigError*>(&error);
  const nb::object exception =
      config != nullptr ? type(nb::str(error.what()), diagnostics_of(*config, errors)) : type(nb::str(error.what()));
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace gpunn::python
