// Quantised operators of ONNX files: each has the integers, scales and zero points that the file gives it.
#include <gpunn/engine.hpp>
#include <gpunn/onnx_export.hpp>
#include <gpunn/training.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "interchange/onnx/file_model.hpp"
#include "onnx_files.hpp"

using namespace onnx_test;
using Proto = gpunn::onnx::TensorProto;

namespace {

using Integers = std::vector<int32_t>;

void stored(FileBuilder& file, const std::string& name, Proto::DataType type, const Shape& shape,
            const Integers& values) {
  auto* tensor = file.graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const int64_t size : shape) tensor->add_dims(size);
  for (const int32_t value : values) tensor->add_int32_data(value);
}

// A scale and a zero point of one number.
void grid(FileBuilder& file, const std::string& name, float scale, int32_t zero_point, Proto::DataType type) {
  file.tensor(name + ".scale", {}, {scale});
  stored(file, name + ".zero", type, {}, {zero_point});
}

std::vector<std::string> with_grid(const std::string& x, const std::string& name) {
  return {x, name + ".scale", name + ".zero"};
}

void round(FileBuilder& file, const std::string& x, const std::string& name, const std::string& y) {
  file.node("QuantizeLinear", with_grid(x, name), y + ".integers");
  file.node("DequantizeLinear", with_grid(y + ".integers", name), y);
}

std::map<std::string, int64_t> ops_of(const FileBuilder& file) {
  const TemporaryFolder folder;
  ModelOptions options{.backend = "cpu"};
  options.max_batch = 4;
  std::map<std::string, int64_t> count;
  for (const PlannedOp& op : plan_inference(file.save(folder), 4, options).ops) ++count[op.op];
  return count;
}

Floats numbers(int64_t count, float most, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-most, most);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = draw(random);
  return values;
}

// A rounded input, a product with weights of these types and a rounded answer.
FileBuilder product(Proto::DataType type, const Integers& weights, int32_t zero_point) {
  FileBuilder file({4});
  grid(file, "in", 0.25F, 128, Proto::UINT8);
  grid(file, "weights", 0.5F, zero_point, type);
  stored(file, "w", type, {4, 2}, weights);
  round(file, "x", "in", "rounded");
  file.node("DequantizeLinear", with_grid("w", "weights"), "numbers");
  file.node("MatMul", {"rounded", "numbers"}, "y");
  return file;
}

}  // namespace

TEST_CASE("a QuantizeLinear and a DequantizeLinear have a scale, zero point and type each") {
  FileBuilder file({6});
  grid(file, "q", 0.5F, 10, Proto::UINT8);
  grid(file, "d", 0.25F, 20, Proto::UINT8);
  file.node("QuantizeLinear", with_grid("x", "q"), "integers");
  file.node("DequantizeLinear", with_grid("integers", "d"), "y");
  // Ties go to the even number; 0 and 255 are the ends.
  check_close(outputs_of(file, {0, 0.25F, 0.75F, -0.25F, -100, 1000}), {-2.5F, -2.5F, -2, -2.5F, -5, 58.75F}, 0);

  FileBuilder no_zero({3}, 21);
  grid(no_zero, "q", 0.5F, -3, Proto::INT8);
  no_zero.node("QuantizeLinear", with_grid("x", "q"), "integers");
  no_zero.node("DequantizeLinear", {"integers", "q.scale"}, "y");
  check_close(outputs_of(no_zero, {0, 1, -100}), {-1.5F, -0.5F, -64}, 0);

  FileBuilder wide({3}, 21);
  wide.tensor("scale", {}, {0.5F});
  auto& q = wide.node("QuantizeLinear", {"x", "scale"}, "integers");
  set(q, "output_dtype", static_cast<int64_t>(Proto::UINT16));
  wide.node("DequantizeLinear", {"integers", "scale"}, "y");
  check_close(outputs_of(wide, {1000.25F, 1e6F, -1}), {1000, 32767.5F, 0}, 0);
}

TEST_CASE("several nodes read one QuantizeLinear, and operators of integers stand between") {
  FileBuilder file({1, 2, 2});
  grid(file, "q", 0.5F, 100, Proto::UINT8);
  file.node("QuantizeLinear", with_grid("x", "q"), "integers");
  auto& pool = file.node("MaxPool", {"integers"}, "largest");
  set(pool, "kernel_shape", {2, 2});
  file.node("DequantizeLinear", with_grid("integers", "q"), "all");
  file.node("DequantizeLinear", with_grid("largest", "q"), "one");
  file.node("Add", {"all", "one"}, "y");
  check_close(outputs_of(file, {1.1F, -2, 3, 0.2F}), {4, 1, 6, 3}, 0);
}

TEST_CASE("scales along a dimension and in blocks are those that the file has there") {
  FileBuilder file({2, 3}, 21);
  file.tensor("scales", {2}, {0.5F, 2});
  stored(file, "zeros", Proto::INT8, {2}, {0, 5});
  set(file.node("QuantizeLinear", {"x", "scales", "zeros"}, "integers"), "axis", -2);
  set(file.node("DequantizeLinear", {"integers", "scales", "zeros"}, "y"), "axis", 1);
  check_close(outputs_of(file, {0.3F, 0.2F, -70, 0.9F, 1.1F, 300}), {0.5F, 0, -64, 0, 2, 244}, 0);

  FileBuilder blocks({4}, 21);
  stored(blocks, "w", Proto::INT8, {4, 1}, {1, 2, 3, 4});
  blocks.tensor("scales", {2, 1}, {0.5F, 10});
  auto& node = blocks.node("DequantizeLinear", {"w", "scales"}, "numbers");
  set(node, "axis", int64_t{0});
  set(node, "block_size", 2);
  blocks.node("MatMul", {"x", "numbers"}, "y");
  check_close(outputs_of(blocks, {1, 1, 1, 1}), {71.5F}, 0);

  FileBuilder four({3}, 21);
  stored(four, "w", Proto::INT4, {3, 1}, {0x8F, 0x07});  // -1, -8 and 7, two in a byte
  four.tensor("scale", {}, {0.5F});
  four.node("DequantizeLinear", {"w", "scale"}, "numbers");
  four.node("MatMul", {"x", "numbers"}, "y");
  check_close(outputs_of(four, {1, 0, 0, 0, 1, 0, 0, 0, 1}), {-0.5F, -4, 3.5F}, 0);
}

TEST_CASE("eight bits multiply the file's integers, and numbers where these are not of one grid") {
  const Integers even = {2, -128, 4, 6, -8, 10, 12, 127};
  const Floats x = {1.6F, -2.5F, 0.1F, 30};
  const FileBuilder whole = product(Proto::INT8, even, 0);
  CHECK(ops_of(whole)["QUANTIZED_LINEAR"] == 1);
  CHECK(ops_of(whole)["MATMUL"] == 0);
  check_close(outputs_of(whole, x),
              {0.5F * (1.5F * 2 - 2.5F * 4 - 8 * 0 + 30 * 12), 0.5F * (1.5F * -128 - 2.5F * 6 + 0 + 30 * 127)});

  // An engine keeps the integers, and not what they are made of.
  const TemporaryFolder folder;
  const EngineExportReport engine =
      export_engine(whole.save(folder), folder / "x.engine", {1, 4}, {.backend = "cpu", .threads = 1});
  CHECK(engine.constants == 1);

  // With a zero point of its own the file's steps are the same, and -1 to 254 of them are more than eight bits hold.
  const FileBuilder shifted = product(Proto::UINT8, {130, 0, 132, 134, 120, 138, 140, 255}, 128);
  CHECK(ops_of(shifted)["QUANTIZED_LINEAR"] == 1);
  check_close(outputs_of(shifted, x), outputs_of(whole, x));
  const FileBuilder asymmetric = product(Proto::UINT8, {0, 255, 1, 100, 2, 200, 3, 50}, 1);
  CHECK(ops_of(asymmetric)["QUANTIZED_LINEAR"] == 0);
  check_close(outputs_of(asymmetric, {1, 0, 0, 0, 0, 1, 0, 0}), {-0.5F, 127, 0, 49.5F}, 0);

  FileBuilder floats({4});
  grid(floats, "in", 0.25F, 128, Proto::UINT8);
  floats.tensor("w", {4, 2}, {100, 0.01F, 0, 0.02F, 0, 0.03F, 0, 0.04F});
  round(floats, "x", "in", "rounded");
  floats.node("MatMul", {"rounded", "w"}, "y");
  CHECK(ops_of(floats)["QUANTIZED_LINEAR"] == 0);
  check_close(outputs_of(floats, {0, 1, 1, 1}), {0, 0.09F}, 1e-6F);
}

TEST_CASE("the weights of a quantised convolution are multiples of the file's scales, not of others") {
  for (const bool has_bias : {true, false}) {
    CAPTURE(has_bias);
    FileBuilder file({1, 3, 3});
    grid(file, "in", 0.125F, 128, Proto::UINT8);
    grid(file, "out", 0.0625F, 0, Proto::UINT8);
    stored(file, "w", Proto::INT8, {2, 1, 1, 1}, {3, 5});
    file.tensor("scales", {2}, {0.3F, 0.7F});
    stored(file, "zeros", Proto::INT8, {2}, {0, 0});
    file.tensor("bias", {2}, {0.5F, -0.25F});
    round(file, "x", "in", "rounded");
    set(file.node("DequantizeLinear", {"w", "scales", "zeros"}, "filters"), "axis", int64_t{0});
    file.node("Conv",
              has_bias ? std::vector<std::string>{"rounded", "filters", "bias"}
                       : std::vector<std::string>{"rounded", "filters"},
              "sums");
    file.node("Relu", {"sums"}, "positive");
    round(file, "positive", "out", "y");
    CHECK(ops_of(file)["QUANTIZED_CONV2D"] == 1);
    const Floats x = numbers(9, 3, 1);
    Floats wanted;
    for (const auto& [weight, bias] : {std::pair{3 * 0.3F, 0.5F}, {5 * 0.7F, -0.25F}}) {
      for (const float one : x) {
        const float sum = std::nearbyint(one / 0.125F) * 0.125F * weight + (has_bias ? bias : 0);
        wanted.push_back(std::nearbyint(std::clamp(sum, 0.0F, 255 * 0.0625F) / 0.0625F) * 0.0625F);
      }
    }
    check_close(outputs_of(file, x), wanted, 1e-6F);
  }
}

TEST_CASE("products of integers are exact, whatever their number") {
  constexpr int64_t kTerms = 3000;
  for (const bool of_data : {false, true}) {
    CAPTURE(of_data);
    FileBuilder file(of_data ? Shape{1, kTerms} : Shape{kTerms});
    grid(file, "in", 1, 0, Proto::UINT8);
    file.node("QuantizeLinear", with_grid("x", "in"), "integers");
    Integers weights(kTerms);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 2 == 0 ? -128 : 127;
    stored(file, "w", Proto::INT8, {kTerms, 1}, weights);
    if (of_data) set(file.node("Transpose", {"integers"}, "turned"), "perm", {0, 2, 1});
    file.node("MatMulInteger", {"integers", of_data ? "turned" : "w"}, "sums");
    set(file.node("Cast", {"sums"}, "y"), "to", static_cast<int64_t>(Proto::FLOAT));
    Floats x(kTerms);
    int64_t sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int64_t value = i % 2 == 0 ? 253 : 255;
      x[i] = static_cast<float>(value);
      sum += value * (of_data ? value : weights[i]);
    }
    CHECK(outputs_of(file, x) == Floats{static_cast<float>(sum)});
  }
}

TEST_CASE("quantised operators are what they are made of") {
  FileBuilder file({2});
  grid(file, "a", 0.5F, 128, Proto::UINT8);
  grid(file, "b", 0.25F, 0, Proto::INT8);
  grid(file, "y", 1, 100, Proto::UINT8);
  stored(file, "w", Proto::INT8, {2, 2}, {1, 2, 3, 4});
  file.node("QuantizeLinear", with_grid("x", "a"), "integers");
  file.node("QLinearMatMul", {"integers", "a.scale", "a.zero", "w", "b.scale", "b.zero", "y.scale", "y.zero"},
            "product");
  file.node("DequantizeLinear", with_grid("product", "y"), "y");
  check_close(outputs_of(file, {4, 8}), {7, 10}, 0);
  CHECK(ops_of(file)["QUANTIZED_LINEAR"] == 1);

  for (const std::string integers : {"dynamic", "by_data"}) {
    CAPTURE(integers);
    FileBuilder dynamic({2});
    auto& node = dynamic.node("DynamicQuantizeLinear", {"x"}, "dynamic");
    node.add_output("scale");
    node.add_output("zero");
    dynamic.node("QuantizeLinear", {"x", "scale", "zero"}, "by_data");
    dynamic.node("DequantizeLinear", {integers, "scale", "zero"}, "y");
    // One scale for the whole batch, as ONNX has it: from -51 to 204 in steps of 1.
    check_close(outputs_of(dynamic, {-51, 0.4F, 204, 7.6F}), {-51, 0, 204, 8}, 1e-6F);
  }
}

TEST_CASE("a file in eight bits is written again with its integers and scales") {
  const TemporaryFolder folder;
  const FileBuilder file = product(Proto::INT8, {2, -128, 4, 6, -8, 10, 12, 126}, 0);
  const auto again = folder / "again.onnx";
  export_onnx(file.save(folder), again, {});
  const interchange::FileModel written = interchange::read_file_model(again);
  std::vector<int64_t> integers;
  std::vector<float> scales;
  for (const interchange::FileNode& node : written.nodes) {
    if (node.op != "DequantizeLinear" || !written.initializers.contains(node.inputs[0])) continue;
    for (const interchange::Size& one : written.initializers.at(node.inputs[0]).integers)
      integers.push_back(one.factor);
    scales = *written.initializers.at(node.inputs[1]).floats;
  }
  CHECK(integers == std::vector<int64_t>{2, 4, -8, 12, -128, 6, 10, 126});
  CHECK(scales == std::vector<float>{0.5F, 0.5F});
  CHECK(std::ranges::none_of(written.nodes, [](const interchange::FileNode& node) { return node.op == "Div"; }));
  const Model model = Model::load(again, {.backend = "cpu", .threads = 1, .max_batch = 8});
  const Floats x = numbers(8, 20, 2);
  CHECK(first_output(model, x) == outputs_of(file, x));
}

TEST_CASE("a tensor between other operators is written again as QuantizeLinear, and read with the same answers") {
  const TemporaryFolder folder;
  FileBuilder file({2, 3});
  file.tensor("scales", {3}, {0.3F, 0.5F, 0.7F});
  stored(file, "zeros", Proto::INT8, {3}, {-1, 0, 7});
  set(file.node("QuantizeLinear", {"x", "scales", "zeros"}, "integers"), "axis", 2);
  auto& node = file.node("DynamicQuantizeLinear", {"x"}, "more");
  node.add_output("scale");
  node.add_output("zero");
  file.node("DequantizeLinear", {"more", "scale", "zero"}, "numbers");
  set(file.node("Cast", {"integers"}, "floats"), "to", static_cast<int64_t>(Proto::FLOAT));
  file.node("Add", {"numbers", "floats"}, "y");
  const auto again = folder / "again.onnx";
  export_onnx(file.save(folder), again, {});
  std::map<std::string, int> nodes;
  for (const interchange::FileNode& one : interchange::read_file_model(again).nodes) ++nodes[one.op];
  CHECK(nodes["QuantizeLinear"] == 1);
  CHECK(nodes["DynamicQuantizeLinear"] == 3);
  CHECK(nodes["Div"] == 0);
  const Floats x = numbers(18, 100, 3);
  const Model model = Model::load(again, {.backend = "cpu", .threads = 1, .max_batch = 8});
  CHECK(first_output(model, x) == outputs_of(file, x));
}

TEST_CASE("a scale of the whole batch sees no rows of an earlier call") {
  const TemporaryFolder folder;
  FileBuilder file({2});
  auto& node = file.node("DynamicQuantizeLinear", {"x"}, "integers");
  node.add_output("scale");
  node.add_output("zero");
  file.node("DequantizeLinear", {"integers", "scale", "zero"}, "y");
  export_engine(file.save(folder), folder / "x.engine", {4}, {.backend = "cpu", .threads = 1});
  const Model engine = Model::load(folder / "x.engine", {.backend = "cpu", .threads = 1});
  first_output(engine, numbers(8, 1000, 4));
  CHECK(first_output(engine, {0.1F, 1}) == outputs_of(file, {0.1F, 1}));
}

TEST_CASE("quantised tensors that can't be are refused with the reason") {
  const auto refused = [](float scale, Proto::DataType type, const Shape& shape) {
    FileBuilder file({2}, 21);
    file.tensor("scale", shape, Floats(static_cast<std::size_t>(element_count(shape)), scale));
    stored(file, "zero", type, shape, Integers(static_cast<std::size_t>(element_count(shape)), 0));
    set(file.node("QuantizeLinear", {"x", "scale", "zero"}, "integers"), "axis", int64_t{0});
    file.node("DequantizeLinear", {"integers", "scale", "zero"}, "y");
    return refusal(file);
  };
  CHECK(refused(0, Proto::UINT8, {}).find("its scale 0 is not above 0") != std::string::npos);
  CHECK(refused(-1, Proto::UINT8, {}).find("its scale -1 is not above 0") != std::string::npos);
  CHECK(refused(1, Proto::INT32, {}).find("makes int32 of numbers") != std::string::npos);
  CHECK(refused(1, Proto::UINT8, {2}).find("a dimension other than the batch's") != std::string::npos);

  FileBuilder scale({2});
  auto& node = scale.node("DynamicQuantizeLinear", {"x"}, "integers");
  node.add_output("y");
  CHECK(refusal(scale).find("one number, is the graph's output") != std::string::npos);

  FileBuilder sums({1, 4200});
  grid(sums, "in", 1, 0, Proto::UINT8);
  sums.node("QuantizeLinear", with_grid("x", "in"), "integers");
  set(sums.node("Transpose", {"integers"}, "turned"), "perm", {0, 2, 1});
  sums.node("MatMulInteger", {"integers", "turned"}, "y");
  CHECK(refusal(sums).find("more products than f32 holds exactly") != std::string::npos);
}
