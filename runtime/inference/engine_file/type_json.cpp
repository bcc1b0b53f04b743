#include "inference/engine_file/type_json.hpp"

#include <gpunn/error.hpp>
#include <gpunn/op_signature.hpp>

#include <cstdint>
#include <string>

#include "common/text.hpp"

namespace gpunn::inference {

namespace {

constexpr std::size_t kMostDimensions = GPUNN_MAX_RANK;
constexpr int64_t kMostBytes = int64_t{1} << 46;

DType dtype_of(const std::string& name) {
  for (const ops::Dtype& one : ops::kDtypes) {
    if (one.name == name) return static_cast<DType>(one.id);
  }
  throw Error("there is no type " + in_quotes(name));
}

}  // namespace

nlohmann::ordered_json type_json(const TensorType& type) {
  return {
      {"dtype", name_of(type.dtype)}, {"shape", type.shape}, {"channels_last", type.layout == Layout::channels_last}};
}

TensorType type_of(const nlohmann::ordered_json& json) {
  TensorType type;
  type.dtype = dtype_of(json.at("dtype").get<std::string>());
  type.shape = json.at("shape").get<Shape>();
  if (type.shape.size() > kMostDimensions) throw Error("a tensor has too many dimensions");
  auto bytes = static_cast<int64_t>(size_of(type.dtype));
  for (const int64_t dim : type.shape) {
    if (dim < 1 || dim > kMostBytes / bytes) throw Error("a tensor has the impossible shape " + to_string(type.shape));
    bytes *= dim;
  }
  if (json.at("channels_last").get<bool>()) {
    type.layout = Layout::channels_last;
    if (!has_layouts(type)) throw Error("a tensor " + to_string(type.shape) + " has no layout channels-last");
  }
  return type;
}

}  // namespace gpunn::inference
