#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gpunn::interchange {

// ONNX's graph without protobuf: write_onnx.cpp alone sees the messages. Types have the numbers of
// TensorProto.DataType.
enum class OnnxType : int32_t { f32 = 1, u8 = 2, i8 = 3, i32 = 6, i64 = 7, boolean = 9, f16 = 10, f64 = 11, bf16 = 16 };
OnnxType onnx_type(DType dtype);

struct OnnxNode;

struct OnnxAttribute {
  std::string name;
  // Nodes are a branch of an If: they read the values of the graph around them, and give the output of the last one.
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<OnnxNode>> value;
};

struct OnnxNode {
  std::string op, name;
  std::vector<std::string> inputs, outputs;  // an empty input is left out
  std::vector<OnnxAttribute> attributes;
};

struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::f32;
  Shape shape;
  std::span<const std::byte> bytes;  // little-endian; of the weights, or of OnnxModel::constants
};

// A size, or the name of one that the caller chooses.
using OnnxDimension = std::variant<int64_t, std::string>;

// An input or output.
struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::f32;
  std::vector<OnnxDimension> shape;
};

struct OnnxModel {
  int64_t opset = 18;
  std::string name;
  std::vector<OnnxNode> nodes;  // in an order in which they can run
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::deque<std::vector<std::byte>> constants;
};

}  // namespace gpunn::interchange
