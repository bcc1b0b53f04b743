// A call of a single op, or of its gradient, on an engine.
#include <gpunn/error.hpp>
#include <gpunn/ops.hpp>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include "eager_arrays.hpp"
#include "process.hpp"

namespace gpunn::python {

namespace {

using eager::Array;
using eager::Engine;
using eager::Op;

// The types are settled and looked through once. Each run has the addresses of the arrays that it was made of, or
// others of the same types. Any thread may run it.
class Call {
 public:
  Call(Engine engine, Op op, nb::handle inputs, nb::handle outputs)
      : engine_(std::move(engine)), op_(std::move(op)), arrays_(arrays_of(inputs)), inputs_(arrays_.size()) {
    append(outputs);
    outputs_ = arrays_.size() - inputs_;
  }
  Call(Engine engine, Op op, nb::handle cotangent, nb::handle inputs, nb::handle outputs, nb::handle wanted,
       nb::handle gradients)
      : Call(std::move(engine), std::move(op), inputs, outputs) {
    wanted_ = flags_of(wanted);
    append(gradients);
    append_one(array_of(cotangent));
  }

  uint64_t scratch_bytes(bool capturing, std::optional<nb::handle> addresses) const {
    const std::vector<Array> arrays = placed(addresses);
    const Unlocked released;
    const AtWork at_work;
    if (!wanted_) return engine_.scratch_bytes(op_, inputs(arrays), outputs(arrays), capturing);
    return engine_.gradient_scratch_bytes(op_, arrays.back(), inputs(arrays), outputs(arrays), *wanted_,
                                          gradients(arrays), capturing);
  }

  void run(uintptr_t stream, bool capturing, uintptr_t scratch, uint64_t scratch_bytes,
           std::optional<nb::handle> addresses) const {
    const std::vector<Array> arrays = placed(addresses);
    const eager::CallerStream on{.native = pointer(stream), .capturing = capturing};
    const eager::Scratch memory{.data = pointer(scratch), .bytes = scratch_bytes};
    const Unlocked released;
    const AtWork at_work;
    if (!wanted_) {
      engine_.run(op_, inputs(arrays), outputs(arrays), on, memory);
    } else {
      engine_.run_gradient(op_, arrays.back(), inputs(arrays), outputs(arrays), *wanted_, gradients(arrays), on,
                           memory);
    }
  }

 private:
  void append_one(Array array) { arrays_.push_back(std::move(array)); }
  void append(nb::handle list) {
    for (nb::handle one : list) append_one(array_of(one));
  }

  std::vector<Array> placed(std::optional<nb::handle> addresses) const {
    std::vector<Array> arrays = arrays_;
    if (!addresses || addresses->is_none()) return arrays;
    std::size_t i = 0;
    for (nb::handle one : *addresses) {
      if (i == arrays.size()) break;
      arrays[i++].data = pointer(nb::cast<uintptr_t>(one));
    }
    if (i != arrays.size() || nb::len(*addresses) != i) {
      throw Error("a call of " + std::to_string(arrays.size()) + " arrays was given " +
                      std::to_string(nb::len(*addresses)) + " addresses",
                  ExitCode::usage);
    }
    return arrays;
  }

  std::span<const Array> inputs(std::span<const Array> arrays) const { return arrays.first(inputs_); }
  std::span<const Array> outputs(std::span<const Array> arrays) const { return arrays.subspan(inputs_, outputs_); }
  std::span<const Array> gradients(std::span<const Array> arrays) const {
    return arrays.subspan(inputs_ + outputs_, arrays.size() - inputs_ - outputs_ - 1);
  }

  Engine engine_;
  Op op_;
  std::vector<Array> arrays_;  // inputs, outputs; of a gradient also the gradients and the cotangent
  std::size_t inputs_ = 0, outputs_ = 0;
  std::optional<std::vector<bool>> wanted_;  // of a gradient
};

}  // namespace

void bind_call(nb::module_& module) {
  nb::class_<Call>(module, "Call", "An op, or its gradient, on arrays of settled types.")
      .def(nb::init<Engine, Op, nb::handle, nb::handle>(), nb::arg("engine"), nb::arg("op"), nb::arg("inputs"),
           nb::arg("outputs"))
      .def_static(
          "gradient",
          [](const Engine& engine, const Op& op, nb::handle cotangent, nb::handle inputs, nb::handle outputs,
             nb::handle wanted,
             nb::handle gradients) { return Call(engine, op, cotangent, inputs, outputs, wanted, gradients); },
          nb::arg("engine"), nb::arg("op"), nb::arg("cotangent"), nb::arg("inputs"), nb::arg("outputs"),
          nb::arg("wanted"), nb::arg("gradients"))
      .def("scratch_bytes", &Call::scratch_bytes, nb::arg("capturing") = false, nb::arg("addresses") = nb::none(),
           "Bytes of temporary memory that `run` needs.")
      .def("run", &Call::run, nb::arg("stream") = 0, nb::arg("capturing") = false, nb::arg("scratch") = 0,
           nb::arg("scratch_bytes") = 0, nb::arg("addresses") = nb::none(),
           "`addresses`: of inputs and outputs; of a gradient also of the gradients, then of the cotangent.");
}

}  // namespace gpunn::python
