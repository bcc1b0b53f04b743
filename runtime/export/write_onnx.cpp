#include "export/write_onnx.hpp"

#include <gpunn/error.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <exception>

#include "common/files.hpp"
#include "interchange/onnx/import.hpp"

#ifdef GPUNN_WITH_ONNX
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <interchange/onnx/onnx.pb.h>
#endif

namespace gpunn::interchange {

int64_t ir_version(int64_t opset) { return opset <= 14 ? 7 : opset <= 18 ? 8 : opset <= 20 ? 9 : 10; }

namespace {

constexpr std::size_t kLeastExternal = 1024;  // bytes; smaller ones stay in the file, where shape inference reads them

bool is_large(const OnnxTensor& tensor) { return tensor.bytes.size() >= kLeastExternal; }

}  // namespace

bool has_large_tensors(const OnnxModel& model) { return std::ranges::any_of(model.tensors, is_large); }

#ifndef GPUNN_WITH_ONNX

void write_onnx(const OnnxModel& /*model*/, const std::filesystem::path& /*file*/,
                const std::filesystem::path& /*data*/) {
  require_onnx();
}

#else

namespace {

constexpr uint64_t kAlignment = 4096;  // for runtimes that map the file

// Protobuf knows no exceptions, and its destructors write: an error waits until all of that is over.
class FileStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(OutputFile& out) : out_(out) {}
  bool Write(const void* buffer, int size) override {
    if (error_ != nullptr) return false;
    try {
      out_.write({static_cast<const char*>(buffer), static_cast<std::size_t>(size)});
    } catch (...) {
      error_ = std::current_exception();
    }
    return error_ == nullptr;
  }
  void throw_error() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  OutputFile& out_;
  std::exception_ptr error_;
};

void set_type(onnx::ValueInfoProto& to, const OnnxValue& value) {
  to.set_name(value.name);
  auto* type = to.mutable_type()->mutable_tensor_type();
  type->set_elem_type(static_cast<int32_t>(value.type));
  for (const OnnxDimension& dimension : value.shape) {
    auto* to_dimension = type->mutable_shape()->add_dim();
    if (const auto* size = std::get_if<int64_t>(&dimension)) {
      to_dimension->set_dim_value(*size);
    } else {
      to_dimension->set_dim_param(std::get<std::string>(dimension));
    }
  }
}

void add_node(onnx::GraphProto& graph, const OnnxNode& node) {
  auto* to = graph.add_node();
  to->set_op_type(node.op);
  to->set_name(node.name);
  for (const std::string& input : node.inputs) to->add_input(input);
  for (const std::string& output : node.outputs) to->add_output(output);
  for (const OnnxAttribute& attribute : node.attributes) {
    auto* a = to->add_attribute();
    a->set_name(attribute.name);
    if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
      a->set_type(onnx::AttributeProto::INT);
      a->set_i(*number);
    } else if (const auto* real = std::get_if<float>(&attribute.value)) {
      a->set_type(onnx::AttributeProto::FLOAT);
      a->set_f(*real);
    } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
      a->set_type(onnx::AttributeProto::STRING);
      a->set_s(*text);
    } else if (const auto* nodes = std::get_if<std::vector<OnnxNode> >(&attribute.value)) {
      a->set_type(onnx::AttributeProto::GRAPH);
      a->mutable_g()->set_name(node.name + "/" + attribute.name);
      for (const OnnxNode& one : *nodes) add_node(*a->mutable_g(), one);
      a->mutable_g()->add_output()->set_name(nodes->back().outputs.front());
    } else {
      a->set_type(onnx::AttributeProto::INTS);
      for (const int64_t one : std::get<std::vector<int64_t> >(attribute.value)) a->add_ints(one);
    }
  }
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_external(const OnnxTensor& tensor, const std::filesystem::path& data) {
  return !data.empty() && is_large(tensor);
}

uint64_t aligned(uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

void add_tensor(onnx::GraphProto& graph, const OnnxTensor& tensor, const std::filesystem::path& data, uint64_t& at) {
  auto* to = graph.add_initializer();
  to->set_name(tensor.name);
  to->set_data_type(static_cast<int32_t>(tensor.type));
  for (const int64_t size : tensor.shape) to->add_dims(size);
  if (!is_external(tensor, data)) {
    to->set_raw_data(std::string(text_of(tensor.bytes)));
    return;
  }
  at = aligned(at);
  to->set_data_location(onnx::TensorProto::EXTERNAL);
  const auto set = [&](const char* key, const std::string& value) {
    auto* entry = to->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  set("location", data.filename().string());
  set("offset", std::to_string(at));
  set("length", std::to_string(tensor.bytes.size()));
  at += tensor.bytes.size();
}

void write_data(const OnnxModel& model, const std::filesystem::path& data) {
  write_atomically(data, [&](OutputFile& out) {
    uint64_t at = 0;
    for (const OnnxTensor& tensor : model.tensors) {
      if (!is_external(tensor, data)) continue;
      out.write(std::string(aligned(at) - at, '\0'));
      out.write(text_of(tensor.bytes));
      at = aligned(at) + tensor.bytes.size();
    }
  });
}

}  // namespace

void write_onnx(const OnnxModel& model, const std::filesystem::path& file, const std::filesystem::path& data) {
  onnx::ModelProto proto;
  proto.set_ir_version(ir_version(model.opset));
  proto.set_producer_name("gpunn");
  proto.set_producer_version(std::string(version()));
  proto.add_opset_import()->set_version(model.opset);
  for (const auto& [key, value] : model.metadata) {
    auto* entry = proto.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name(model.name);
  for (const OnnxNode& node : model.nodes) add_node(graph, node);
  for (const OnnxValue& value : model.inputs) set_type(*graph.add_input(), value);
  for (const OnnxValue& value : model.outputs) set_type(*graph.add_output(), value);
  uint64_t at = 0;
  for (const OnnxTensor& tensor : model.tensors) add_tensor(graph, tensor, data, at);
  if (!data.empty()) write_data(model, data);
  write_atomically(file, [&](OutputFile& out) {
    FileStream stream(out);
    bool whole = false;
    {
      google::protobuf::io::CopyingOutputStreamAdaptor adaptor(&stream);
      whole = proto.SerializeToZeroCopyStream(&adaptor) && adaptor.Flush();
    }
    stream.throw_error();
    if (!whole) throw Error("can't write " + file.string() + ": protobuf refuses the model, which may be too large");
  });
}

#endif

}  // namespace gpunn::interchange
