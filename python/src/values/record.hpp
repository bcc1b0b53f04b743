#pragma once

#include <map>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include "bindings.hpp"

namespace gpunn::python {

// A struct of results as a class of Python whose attributes are read, and which shows them.
template <typename T>
class Record {
 public:
  Record(nb::module_& module, const char* name, const char* doc) : class_(module, name, doc) {
    fields_ = nb::list();
    class_.attr("_fields") = fields_;
    class_.def("__repr__", [](nb::handle self) {
      std::string text = nb::cast<std::string>(self.type().attr("__name__")) + "(";
      const char* between = "";
      for (const nb::handle field : nb::cast<nb::list>(self.type().attr("_fields"))) {
        text +=
            between + nb::cast<std::string>(field) + "=" + nb::cast<std::string>(nb::repr(nb::getattr(self, field)));
        between = ", ";
      }
      return text + ")";
    });
  }

  template <typename Member>
  Record& field(const char* name, Member T::*member, const char* doc = "") {
    class_.def_ro(name, member, doc);
    fields_.append(name);
    return *this;
  }
  template <typename Getter>
  Record& computed(const char* name, Getter getter, const char* doc = "") {
    class_.def_prop_ro(name, std::move(getter), nb::rv_policy::automatic, doc);  // values, not parts of the record
    fields_.append(name);
    return *this;
  }
  // It can be pickled and copied: these are all members of T.
  template <typename... Members>
  Record& whole(Members T::*... members) {
    class_.def("__getstate__", [members...](const T& record) { return std::make_tuple(record.*members...); });
    class_.def("__setstate__", [members...](T& record, const std::tuple<Members...>& state) {
      new (&record) T();
      std::apply([&](const Members&... values) { ((record.*members = values), ...); }, state);
    });
    return *this;
  }
  nb::class_<T>& of() { return class_; }

 private:
  nb::class_<T> class_;
  nb::list fields_;
};

}  // namespace gpunn::python
