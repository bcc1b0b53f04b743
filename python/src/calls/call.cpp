#include "calls/call.hpp"

#include <gpunn/error.hpp>

#include <string>
#include <utility>

#include <nanobind/stl/optional.h>

#include "calls/eager_arrays.hpp"
#include "errands/process.hpp"

namespace gpunn::python {

using eager::Array;
using eager::Engine;
using eager::Op;

Call::Call(Engine engine, Op op, nb::handle inputs, nb::handle outputs)
    : engine_(std::move(engine)), op_(std::move(op)), arrays_(arrays_of(inputs)), inputs_(arrays_.size()) {
  append(outputs);
  outputs_ = arrays_.size() - inputs_;
}

Call::Call(Engine engine, Op op, nb::handle cotangent, nb::handle inputs, nb::handle outputs, nb::handle wanted,
           nb::handle gradients)
    : Call(std::move(engine), std::move(op), inputs, outputs) {
  wanted_ = flags_of(wanted);
  append(gradients);
  append_one(array_of(cotangent));
}

uint64_t Call::scratch_bytes(bool capturing, std::span<void* const> addresses) const {
  std::vector<Array> arrays = placed(addresses);
  uint64_t bytes = 0;
  {
    const Unlocked released;
    const AtWork at_work;
    bytes = !wanted_ ? engine_.scratch_bytes(op_, inputs(arrays), outputs(arrays), capturing, &lookup_)
                     : engine_.gradient_scratch_bytes(op_, arrays.back(), inputs(arrays), outputs(arrays), *wanted_,
                                                      gradients(arrays), capturing, &lookup_);
  }
  keep(std::move(arrays));
  return bytes;
}

void Call::run(const eager::CallerStream& stream, const eager::Scratch& scratch,
               std::span<void* const> addresses) const {
  std::vector<Array> arrays = placed(addresses);
  {
    const Unlocked released;
    const AtWork at_work;
    if (!wanted_) {
      engine_.run(op_, inputs(arrays), outputs(arrays), stream, scratch, &lookup_);
    } else {
      engine_.run_gradient(op_, arrays.back(), inputs(arrays), outputs(arrays), *wanted_, gradients(arrays), stream,
                           scratch, &lookup_);
    }
  }
  keep(std::move(arrays));
}

std::vector<void*> Call::addresses_of(std::optional<nb::handle> addresses) const {
  std::vector<void*> found;
  if (!addresses || addresses->is_none()) {
    for (const Array& array : arrays_) found.push_back(array.data);
  } else {
    for (nb::handle one : *addresses) found.push_back(pointer(nb::cast<uintptr_t>(one)));
  }
  return found;
}

void Call::append(nb::handle list) {
  for (nb::handle one : list) append_one(array_of(one));
}

std::vector<Array> Call::placed(std::span<void* const> addresses) const {
  if (addresses.size() != arrays_.size()) {
    throw Error("a call of " + std::to_string(arrays_.size()) + " arrays was given " +
                    std::to_string(addresses.size()) + " addresses",
                ExitCode::usage);
  }
  std::vector<Array> arrays;
  if (spare_.empty()) {
    arrays = arrays_;
  } else {
    arrays = std::move(spare_.back());
    spare_.pop_back();
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].data = addresses[i];
  return arrays;
}

void Call::keep(std::vector<Array> arrays) const { spare_.push_back(std::move(arrays)); }

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
      .def(
          "scratch_bytes",
          [](const Call& call, bool capturing, std::optional<nb::handle> addresses) {
            return call.scratch_bytes(capturing, call.addresses_of(addresses));
          },
          nb::arg("capturing") = false, nb::arg("addresses") = nb::none(),
          "Bytes of temporary memory that `run` needs.")
      .def(
          "run",
          [](const Call& call, uintptr_t stream, bool capturing, uintptr_t scratch, uint64_t scratch_bytes,
             std::optional<nb::handle> addresses) {
            call.run({.native = pointer(stream), .capturing = capturing},
                     {.data = pointer(scratch), .bytes = scratch_bytes}, call.addresses_of(addresses));
          },
          nb::arg("stream") = 0, nb::arg("capturing") = false, nb::arg("scratch") = 0, nb::arg("scratch_bytes") = 0,
          nb::arg("addresses") = nb::none(),
          "`addresses`: of inputs and outputs; of a gradient also of the gradients, then of the cotangent.");
}

}  // namespace gpunn::python
