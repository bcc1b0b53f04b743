#include "program/flat_tensors.hpp"

#include <gpunn/error.hpp>

#include <cstring>
#include <map>
#include <utility>

namespace gpunn::training {

namespace {

bool has(const ParameterLayout& layout, Has which, std::size_t parameter) {
  return which == Has::all || !layout.rules[parameter].frozen;
}

}  // namespace

std::vector<storage::StoredTensor> take_apart(const ParameterLayout& layout, const std::vector<std::byte>& flat,
                                              Has which) {
  std::vector<storage::StoredTensor> tensors;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!has(layout, which, i)) continue;
    const nn::Parameter& parameter = layout.parameters[i];
    const TensorType type{DType::f32, parameter.shape};
    const auto first = flat.begin() + layout.offset[i] * static_cast<int64_t>(sizeof(float));
    tensors.push_back({parameter.name, type, {first, first + static_cast<int64_t>(type.bytes())}});
  }
  return tensors;
}

std::string mismatches(const ParameterLayout& layout, const std::vector<storage::StoredTensor>& tensors,
                       const std::string& what, Has which) {
  std::map<std::string, const storage::StoredTensor*> stored;
  for (const storage::StoredTensor& tensor : tensors) stored.emplace(tensor.name, &tensor);
  std::string text;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!has(layout, which, i)) continue;
    const nn::Parameter& parameter = layout.parameters[i];
    const auto found = stored.find(parameter.name);
    const TensorType expected{DType::f32, parameter.shape};
    if (found == stored.end()) {
      text += "\n  " + what + " '" + parameter.name + "' " + to_string(expected) + " is missing";
    } else {
      if (found->second->type != expected) {
        text += "\n  " + what + " '" + parameter.name + "' is " + to_string(found->second->type) + ", the model's is " +
                to_string(expected);
      }
      stored.erase(found);
    }
  }
  for (const auto& [name, tensor] : stored) {
    text += "\n  " + what + " '" + name + "' " + to_string(tensor->type) + " is not in the model";
  }
  return text;
}

std::vector<std::byte> put_together(const ParameterLayout& layout, const std::vector<storage::StoredTensor>& tensors,
                                    Has which) {
  std::vector<std::byte> flat((which == Has::all ? layout.type() : layout.trained_type()).bytes());
  std::map<std::string, const storage::StoredTensor*> stored;
  for (const storage::StoredTensor& tensor : tensors) stored.emplace(tensor.name, &tensor);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!has(layout, which, i)) continue;
    const std::vector<std::byte>& values = stored.at(layout.parameters[i].name)->values;
    std::memcpy(flat.data() + static_cast<std::size_t>(layout.offset[i]) * sizeof(float), values.data(), values.size());
  }
  return flat;
}

[[noreturn]] void not_this_model(const std::string& differences) {
  throw Error("the checkpoint is of another model or optimizer:" + differences, ExitCode::usage);
}

}  // namespace gpunn::training
