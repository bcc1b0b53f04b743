// An ONNX file as plain data: what its bytes say, checked for sizes but not for meaning.
#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gpunn::interchange {

// Types of elements, with the numbers of ONNX's TensorProto.DataType.
enum class Element : int32_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  text = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};
std::string name_of(Element element);  // "float", "int64", "type 20"
bool is_floating(Element element);     // of any width
bool computes_in(Element element);     // a float of 16 bits or more: ONNX only stores numbers in narrower ones
bool is_integer(Element element);      // bool included

// A size: `factor`, or `factor` times the number of rows of a batch.
struct Size {
  int64_t factor = 0;
  bool of_batch = false;
  bool operator==(const Size&) const = default;
};

// A tensor that is known before anything runs. Integers and truth values are kept as sizes, so that arithmetic on
// shapes can follow the batch. The factor of a uint64 has the bits of the number.
struct Constant {
  Element element = Element::f32;
  Shape shape;
  // Of all floats: as a layer takes them. That is exact, but for f64, whose numbers are rounded to f32.
  std::shared_ptr<const std::vector<float>> floats;
  std::vector<Size> integers;
  bool trained = false;                                          // an initializer, which training may change
  std::shared_ptr<const std::vector<double>> doubles = nullptr;  // of f64: the numbers themselves
  std::shared_ptr<const std::vector<float>> scales = nullptr;    // of floats that are integers times these

  std::size_t count() const;
  // An element as a number. A float is exact. Throws Unsupported for a size that depends on the batch.
  double number(std::size_t i) const;
};

struct Attribute {
  std::string name;
  std::string reference;  // in a function: the attribute of the call that this one takes its value from
  // std::monostate: of a kind that is not read, as a subgraph.
  std::variant<std::monostate, float, int64_t, std::string, Constant, std::vector<float>, std::vector<int64_t>,
               std::vector<std::string>>
      value;
  bool is_graph = false;
};

struct FileNode {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;  // an empty name: left out
  std::vector<Attribute> attributes;
  int64_t opset = 0;  // of ONNX's operators, where it is another one than the model's; 0: that one
};

struct FileFunction {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<FileNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct FileInput {
  std::string name;
  Element element = Element::none;
  bool has_shape = false;
  std::vector<std::optional<int64_t>> shape;  // nothing: a size that the file leaves open
};

struct FileModel {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  std::string producer, graph_name;
  std::vector<FileNode> nodes;
  std::vector<FileInput> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, Constant> initializers;
  std::vector<FileFunction> functions;
  std::map<std::string, std::string> metadata;
};

// Reads a file and the data that it keeps beside itself. Throws Error: missing where the file or its data is not there,
// else what is wrong with it. What it says is compared with its bytes before memory is taken for them.
FileModel read_file_model(const std::filesystem::path& file);

}  // namespace gpunn::interchange
