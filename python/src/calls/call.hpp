// A call of a single op, or of its gradient, on an engine.
#pragma once

#include <gpunn/ops.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <nanobind/nanobind.h>

#include "bindings.hpp"

namespace gpunn::python {

// The types are settled and looked through once. Each run has the addresses of the arrays that it was made of, or
// others of the same types. Any thread may run it, with the interpreter's lock, which is released while it computes.
class Call {
 public:
  Call(eager::Engine engine, eager::Op op, nb::handle inputs, nb::handle outputs);
  // The gradients of an op. `wanted`: of which inputs.
  Call(eager::Engine engine, eager::Op op, nb::handle cotangent, nb::handle inputs, nb::handle outputs,
       nb::handle wanted, nb::handle gradients);

  // `addresses`: of the inputs, then of the outputs; of a gradient also of the gradients, then of the cotangent.
  std::size_t size() const { return arrays_.size(); }
  uint64_t scratch_bytes(bool capturing, std::span<void* const> addresses) const;
  void run(const eager::CallerStream& stream, const eager::Scratch& scratch, std::span<void* const> addresses) const;

  // The addresses that a caller in Python gives; none: those of the arrays that the call was made of.
  std::vector<void*> addresses_of(std::optional<nb::handle> addresses) const;

 private:
  void append_one(eager::Array array) { arrays_.push_back(std::move(array)); }
  void append(nb::handle list);
  std::vector<eager::Array> placed(std::span<void* const> addresses) const;
  void keep(std::vector<eager::Array> arrays) const;

  std::span<const eager::Array> inputs(std::span<const eager::Array> arrays) const { return arrays.first(inputs_); }
  std::span<const eager::Array> outputs(std::span<const eager::Array> arrays) const {
    return arrays.subspan(inputs_, outputs_);
  }
  std::span<const eager::Array> gradients(std::span<const eager::Array> arrays) const {
    return arrays.subspan(inputs_ + outputs_, arrays.size() - inputs_ - outputs_ - 1);
  }

  eager::Engine engine_;
  eager::Op op_;
  std::vector<eager::Array> arrays_;  // inputs, outputs; of a gradient also the gradients and the cotangent
  std::size_t inputs_ = 0, outputs_ = 0;
  std::optional<std::vector<bool>> wanted_;  // of a gradient
  mutable eager::Lookup lookup_;
  // Copies of `arrays_` that no run uses now. The interpreter's lock guards them.
  mutable std::vector<std::vector<eager::Array>> spare_;
};

}  // namespace gpunn::python
