// ONNX files under construction, and what the models of them compute.
#pragma once

#include <gpunn/error.hpp>
#include <gpunn/model.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <interchange/onnx/onnx.pb.h>

#include "catch.hpp"
#include "temporary_folder.hpp"

namespace onnx_test {

using namespace gpunn;           // NOLINT(google-build-using-namespace): for tests
using namespace gpunn::testing;  // NOLINT(google-build-using-namespace)

using Floats = std::vector<float>;

// A file under construction: x[N, ...] in, y out.
class FileBuilder {
 public:
  explicit FileBuilder(const Shape& row, int64_t opset = 18) {
    model_.set_ir_version(8);
    auto* version = model_.add_opset_import();
    version->set_version(opset);
    auto* input = graph().add_input();
    input->set_name("x");
    auto* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(gpunn::onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_param("batch");
    for (const int64_t size : row) type->mutable_shape()->add_dim()->set_dim_value(size);
    graph().add_output()->set_name("y");
  }

  gpunn::onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  gpunn::onnx::TensorProto& tensor(const std::string& name, const Shape& shape, const Floats& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(gpunn::onnx::TensorProto::FLOAT);
    for (const int64_t size : shape) tensor->add_dims(size);
    for (const float value : values) tensor->add_float_data(value);
    return *tensor;
  }

  void integers(const std::string& name, const std::vector<int64_t>& values) {
    integers(name, {static_cast<int64_t>(values.size())}, values);
  }
  void integers(const std::string& name, const Shape& shape, const std::vector<int64_t>& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(gpunn::onnx::TensorProto::INT64);
    for (const int64_t size : shape) tensor->add_dims(size);
    for (const int64_t value : values) tensor->add_int64_data(value);
  }
  void truths(const std::string& name, const Shape& shape, const std::vector<int32_t>& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(gpunn::onnx::TensorProto::BOOL);
    for (const int64_t size : shape) tensor->add_dims(size);
    for (const int32_t value : values) tensor->add_int32_data(value);
  }

  gpunn::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                               const std::string& output) {
    auto* node = graph().add_node();
    node->set_op_type(op);
    node->set_name(output + "_node");
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return *node;
  }

  std::filesystem::path save(const TemporaryFolder& folder) const {
    const auto file = folder / "x.onnx";
    std::ofstream out(file, std::ios::binary);
    model_.SerializeToOstream(&out);
    return file;
  }

  gpunn::onnx::ModelProto& model() { return model_; }

 private:
  gpunn::onnx::ModelProto model_;
};

inline void set(gpunn::onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(gpunn::onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

inline void set(gpunn::onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(gpunn::onnx::AttributeProto::INT);
  attribute->set_i(value);
}

inline void set_text(gpunn::onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(gpunn::onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

inline Floats first_output(const Model& model, const Floats& x) {
  Shape shape = model.inputs().front().row.shape;
  const int64_t rows = static_cast<int64_t>(x.size()) / element_count(shape);
  shape.insert(shape.begin(), rows);
  Shape result = model.outputs().front().row.shape;
  result.insert(result.begin(), rows);
  Floats y(static_cast<std::size_t>(element_count(result)));
  model.run({.name = {}, .dtype = DType::f32, .shape = shape, .data = x.data()},
            {.name = {}, .dtype = DType::f32, .shape = result, .data = y.data()});
  return y;
}

inline Floats outputs_of(const FileBuilder& file, const Floats& x) {
  const TemporaryFolder folder;
  return first_output(Model::load(file.save(folder), {.backend = "cpu", .threads = 1, .max_batch = 8}), x);
}

inline std::string refusal(const FileBuilder& file) {
  const TemporaryFolder folder;
  try {
    Model::load(file.save(folder), {.backend = "cpu"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline void check_close(const Floats& found, const Floats& expected, float tolerance = 1e-5F) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    if (found[i] != expected[i]) {  // infinities are equal, and have no difference
      CHECK(std::abs(found[i] - expected[i]) <= tolerance * std::max(1.0F, std::abs(expected[i])));
    }
  }
}

}  // namespace onnx_test
