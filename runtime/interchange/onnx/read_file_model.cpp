// From ONNX's messages to plain data. All that knows the messages is here.
#include <gpunn/error.hpp>

#include <bit>
#include <limits>
#include <span>
#include <utility>

#include <interchange/onnx/onnx.pb.h>

#include "common/input_file.hpp"
#include "common/text.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/external_data.hpp"
#include "interchange/onnx/file_model.hpp"
#include "interchange/onnx/import.hpp"

namespace gpunn::interchange {

static_assert(std::endian::native == std::endian::little, "raw data is little-endian");

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestFile = std::numeric_limits<int32_t>::max();  // that protobuf reads
constexpr int kMostDimensions = 64;

using Properties = std::map<std::string, std::string>;

template <class Entries>
Properties properties(const Entries& entries) {
  Properties result;
  for (const auto& entry : entries) result[entry.key()] = entry.value();
  return result;
}

template <class T, class Field>
std::vector<std::byte> bytes_as(const Field& field) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(field.size()) * sizeof(T));
  std::size_t at = 0;
  for (const auto& value : field) {
    const T narrow = static_cast<T>(value);
    const auto raw = std::as_bytes(std::span(&narrow, 1));
    std::ranges::copy(raw, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += sizeof(T);
  }
  return bytes;
}

class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file), data_(file) {}

  FileModel read() {
    onnx::ModelProto model;
    {
      const std::string bytes = read_text(file_, kLargestFile);
      if (!model.ParseFromString(bytes) || !model.has_graph()) {
        throw Error(file_.string() + ": not an ONNX model, or damaged: its " + std::to_string(bytes.size()) +
                    " bytes don't read as one");
      }
    }
    FileModel result;
    result.ir_version = model.ir_version();
    result.opsets = opsets(model.opset_import());
    result.producer = model.producer_name();
    result.metadata = properties(model.metadata_props());
    onnx::GraphProto& graph = *model.mutable_graph();
    result.graph_name = graph.name();
    if (graph.sparse_initializer_size() > 0) {
      throw Error(file_.string() + ": sparse initializers, as " +
                  in_quotes(graph.sparse_initializer(0).values().name()) +
                  ", are not read. Store them densely (onnx.helper, or the option of the exporter)");
    }
    for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
      Constant constant = read_tensor(tensor, tensor.name());
      constant.trained = is_floating(constant.element);
      if (tensor.name().empty() || !result.initializers.emplace(tensor.name(), std::move(constant)).second) {
        throw Error(file_.string() + ": the initializer " + in_quotes(tensor.name()) + " is there twice, or nameless");
      }
      tensor.Clear();  // a large model is not to be held twice
    }
    for (const onnx::ValueInfoProto& input : graph.input()) result.inputs.push_back(read_input(input));
    for (const onnx::ValueInfoProto& output : graph.output()) result.outputs.push_back(output.name());
    for (const onnx::NodeProto& node : graph.node()) result.nodes.push_back(read_node(node));
    for (const onnx::FunctionProto& function : model.functions()) result.functions.push_back(read_function(function));
    return result;
  }

 private:
  [[noreturn]] void refuse_tensor(const std::string& name, const std::string& why) const {
    throw Error(file_.string() + ": the tensor " + in_quotes(name) + ": " + why);
  }

  template <class Entries>
  static std::map<std::string, int64_t> opsets(const Entries& entries) {
    std::map<std::string, int64_t> result;
    for (const onnx::OperatorSetIdProto& entry : entries) {
      result[entry.domain() == "ai.onnx" ? "" : entry.domain()] = entry.version();
    }
    return result;
  }

  Constant read_tensor(const onnx::TensorProto& tensor, const std::string& name) {
    const auto element = static_cast<Element>(tensor.data_type());
    const Shape shape(tensor.dims().begin(), tensor.dims().end());
    if (tensor.dims_size() > kMostDimensions) {
      refuse_tensor(name, "has " + std::to_string(tensor.dims_size()) + " dimensions");
    }
    if (!is_floating(element) && !is_integer(element))
      refuse_tensor(name, "elements of " + name_of(element) + " are not read");
    if (tensor.has_segment()) refuse_tensor(name, "is stored in segments, which are not read");
    const std::optional<int64_t> count = checked_count(shape);
    if (!count) {
      refuse_tensor(name,
                    "a shape of " + gpunn::to_string(shape) + " is negative or larger than anything that can be read");
    }
    const uint64_t wanted = bytes_of(element, *count);
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
      return constant_of(element, shape, data_.read(name, properties(tensor.external_data()), wanted));
    }
    if (tensor.has_raw_data()) {
      require_bytes(name, element, shape, tensor.raw_data().size());
      return constant_of(element, shape, std::as_bytes(std::span(tensor.raw_data())));
    }
    const std::vector<std::byte> bytes = typed_bytes(tensor, element);
    require_bytes(name, element, shape, bytes.size());
    return constant_of(element, shape, bytes);
  }

  void require_bytes(const std::string& name, Element element, const Shape& shape, std::size_t found) const {
    const uint64_t wanted = bytes_of(element, *checked_count(shape));
    if (found == wanted) return;
    refuse_tensor(name, "expected " + std::to_string(wanted) + " bytes for " + name_of(element) +
                            gpunn::to_string(shape) + ", found " + std::to_string(found));
  }

  static std::vector<std::byte> typed_bytes(const onnx::TensorProto& tensor, Element element) {
    switch (element) {
      case Element::f32:
        return bytes_as<float>(tensor.float_data());
      case Element::f64:
        return bytes_as<double>(tensor.double_data());
      case Element::i64:
        return bytes_as<int64_t>(tensor.int64_data());
      case Element::u64:
        return bytes_as<uint64_t>(tensor.uint64_data());
      case Element::u32:
        return bytes_as<uint32_t>(tensor.uint64_data());
      case Element::i32:
        return bytes_as<int32_t>(tensor.int32_data());
      case Element::u16:
      case Element::i16:
      case Element::f16:
      case Element::bf16:
        return bytes_as<uint16_t>(tensor.int32_data());
      default:
        return bytes_as<uint8_t>(tensor.int32_data());
    }
  }

  Attribute read_attribute(const onnx::AttributeProto& from) {
    Attribute result{.name = from.name(), .reference = from.ref_attr_name(), .value = {}};
    using Type = onnx::AttributeProto;
    switch (from.type()) {
      case Type::FLOAT:
        result.value = from.f();
        break;
      case Type::INT:
        result.value = static_cast<int64_t>(from.i());
        break;
      case Type::STRING:
        result.value = std::string(from.s());
        break;
      case Type::TENSOR:
        result.value = read_tensor(from.t(), "the attribute " + from.name());
        break;
      case Type::FLOATS:
        result.value = std::vector<float>(from.floats().begin(), from.floats().end());
        break;
      case Type::INTS:
        result.value = std::vector<int64_t>(from.ints().begin(), from.ints().end());
        break;
      case Type::STRINGS:
        result.value = std::vector<std::string>(from.strings().begin(), from.strings().end());
        break;
      case Type::GRAPH:
      case Type::GRAPHS:
        result.is_graph = true;
        break;
      default:
        break;
    }
    return result;
  }

  FileNode read_node(const onnx::NodeProto& from) {
    FileNode node{.name = from.name(),
                  .op = from.op_type(),
                  .domain = from.domain() == "ai.onnx" ? "" : from.domain(),
                  .overload = from.overload(),
                  .inputs = {from.input().begin(), from.input().end()},
                  .outputs = {from.output().begin(), from.output().end()},
                  .attributes = {}};
    for (const onnx::AttributeProto& attribute : from.attribute()) node.attributes.push_back(read_attribute(attribute));
    return node;
  }

  FileFunction read_function(const onnx::FunctionProto& from) {
    FileFunction function{.name = from.name(),
                          .domain = from.domain(),
                          .overload = from.overload(),
                          .inputs = {from.input().begin(), from.input().end()},
                          .outputs = {from.output().begin(), from.output().end()},
                          .attributes = {from.attribute().begin(), from.attribute().end()},
                          .defaults = {},
                          .nodes = {},
                          .opsets = opsets(from.opset_import())};
    for (const onnx::AttributeProto& one : from.attribute_proto()) function.defaults.push_back(read_attribute(one));
    for (const onnx::NodeProto& node : from.node()) function.nodes.push_back(read_node(node));
    return function;
  }

  static FileInput read_input(const onnx::ValueInfoProto& from) {
    FileInput input;
    input.name = from.name();
    if (!from.type().has_tensor_type()) return input;
    const onnx::TypeProto::Tensor& type = from.type().tensor_type();
    input.element = static_cast<Element>(type.elem_type());
    input.has_shape = type.has_shape();
    for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
      input.shape.push_back(dim.has_dim_value() ? std::optional<int64_t>(dim.dim_value()) : std::nullopt);
    }
    return input;
  }

  fs::path file_;
  ExternalData data_;
};

}  // namespace

void require_onnx() {}

FileModel read_file_model(const fs::path& file) { return Reader(file).read(); }

}  // namespace gpunn::interchange
