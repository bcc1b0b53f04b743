#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "program/layout.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::training {

// The flat arrays of a model, and the tensors that files have of them.

// Which parameters a flat array has: gradients and states have the trained ones alone.
enum class Has { all, trained };

// The tensors of a flat array, in the order of the layout.
std::vector<storage::StoredTensor> take_apart(const ParameterLayout& layout, const std::vector<std::byte>& flat,
                                              Has which = Has::all);

// Everything that keeps `tensors` from being this layout's, a line each; `what` names one of them: "parameter".
std::string mismatches(const ParameterLayout& layout, const std::vector<storage::StoredTensor>& tensors,
                       const std::string& what, Has which = Has::all);

// Throws Error(usage) with such lines.
[[noreturn]] void not_this_model(const std::string& differences);

// The flat array of tensors without mismatches.
std::vector<std::byte> put_together(const ParameterLayout& layout, const std::vector<storage::StoredTensor>& tensors,
                                    Has which = Has::all);

}  // namespace gpunn::training
