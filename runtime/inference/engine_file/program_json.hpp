// A planned program as JSON, for engine files.
#pragma once

#include <nlohmann/json.hpp>

#include "execution/steps/compiler.hpp"

namespace gpunn::inference {

using Json = nlohmann::ordered_json;

Json to_json(const execution::CompiledProgram& program);

// Nothing of it is believed: throws Error, or an exception of the JSON library, where ids, sizes or shapes do not fit
// together. What a kernel may touch lies within its tensors; what a plan says of their places is checked where the
// program is bound to memory.
execution::CompiledProgram program_of(const Json& json);

}  // namespace gpunn::inference
