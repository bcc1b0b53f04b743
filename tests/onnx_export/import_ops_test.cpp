// Operators of ONNX as layers, on numbers that can be followed by hand; tests/python compares with ONNX's own cases.
#include <gpunn/data.hpp>
#include <gpunn/network.hpp>
#include <gpunn/onnx_export.hpp>

#include <map>
#include <span>

#include "fields/kind.hpp"
#include "fields/values.hpp"
#include "onnx_files.hpp"

using namespace gpunn;
using namespace onnx_test;

TEST_CASE("values are sliced, split, gathered and joined along any dimension of a sample") {
  FileBuilder file({2, 3});
  file.integers("begin", {-2});
  file.integers("end", {9});
  file.integers("last", {2});
  file.integers("places", {2, 0});
  file.node("Slice", {"x", "begin", "end", "last"}, "right");  // columns 1 and 2
  set(file.node("Gather", {"x", "places"}, "turned"), "axis", 2);
  auto& split = file.node("Split", {"x"}, "above");
  split.add_output("below");
  set(split, "axis", 1);
  set(file.node("Concat", {"above", "below"}, "wide"), "axis", -1);  // [1, 6]
  set(file.node("Concat", {"right", "turned"}, "both"), "axis", 1);  // [4, 2]
  file.node("Flatten", {"wide"}, "flat_wide");
  file.node("Flatten", {"both"}, "flat_both");
  set(file.node("Concat", {"flat_wide", "flat_both"}, "y"), "axis", 1);
  check_close(outputs_of(file, {1, 2, 3, 4, 5, 6}), {1, 2, 3, 4, 5, 6, 2, 3, 5, 6, 3, 1, 6, 4});
}

TEST_CASE("rows of all samples go together through what treats each alike, and apart again") {
  FileBuilder file({2, 3});
  file.integers("rows", {-1, 3});
  file.integers("back", {-1, 2, 2});
  file.node("Reshape", {"x", "rows"}, "r");  // [2*N, 3]
  file.tensor("w", {3, 2}, {1, 0, 0, 1, 1, 1});
  file.node("MatMul", {"r", "w"}, "m");
  file.tensor("b", {2}, {1, -1});
  file.node("Add", {"m", "b"}, "a");
  set(file.node("Softmax", {"a"}, "s"), "axis", 1);
  file.tensor("ten", {}, {10});
  file.node("Mul", {"s", "ten"}, "t");
  file.node("Reshape", {"t", "back"}, "y");
  const auto share = [](float a, float b) { return 10 / (1 + std::exp(b - a)); };  // of two
  const float first = share(5, 4), second = share(3, 1);
  check_close(outputs_of(file, {1, 2, 3, 2, 2, 0}), {first, 10 - first, second, 10 - second});
  // Not where it does not: across the rows of a sample.
  FileBuilder across({2, 3});
  across.integers("rows", {-1, 3});
  across.node("Reshape", {"x", "rows"}, "r");
  across.node("Transpose", {"r"}, "y");
  CHECK_THAT(refusal(across), Contains("the output 'y' is [3, 2*N]"));
  FileBuilder still({2, 3});
  still.integers("rows", {-1, 3});
  still.node("Relu", {"x"}, "r");
  still.node("Reshape", {"r", "rows"}, "y");
  CHECK_THAT(refusal(still), Contains("the output 'y' is [2*N, 3]"));
}

TEST_CASE("a value of one column becomes as many as a constant has, or as are wanted") {
  FileBuilder file({1, 2});
  file.tensor("weights", {1, 3, 1}, {1, 10, 100});
  file.node("Mul", {"x", "weights"}, "wide");  // [3, 2]
  file.integers("shape", {1, 20, 2});
  file.node("Expand", {"x", "shape"}, "tall");
  set(file.node("Concat", {"wide", "tall"}, "y"), "axis", 1);
  Floats expected = {1, 2, 10, 20, 100, 200};
  for (int i = 0; i < 20; ++i) expected.insert(expected.end(), {1, 2});
  check_close(outputs_of(file, {1, 2}), expected);
  FileBuilder batches({1, 2});
  batches.integers("shape", {4, 1, 1, 2});
  batches.node("Expand", {"x", "shape"}, "y");
  CHECK_THAT(refusal(batches), Contains("[4, N, 1, 2]") && Contains("whose first dimension is the batch"));
}

TEST_CASE("any dimension of a sample is padded by a constant") {
  FileBuilder file({2, 1, 2});
  file.integers("pads", {0, 1, 0, 0, 0, 0, 1, 1});
  file.node("Pad", {"x", "pads"}, "y");  // [3, 2, 3]
  check_close(outputs_of(file, {1, 2, 3, 4}), {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0});
}

TEST_CASE("rows are normalised by their norms, and tell their statistics") {
  FileBuilder file({2});
  set(file.node("LpNormalization", {"x"}, "l"), "p", 1);
  file.tensor("w", {2}, {1, 2});
  file.node("RMSNormalization", {"x", "w"}, "r");
  file.tensor("b", {2}, {0, 1});
  auto& norm = file.node("LayerNormalization", {"x", "w", "b"}, "n");
  norm.add_output("mean");
  norm.add_output("rstd");
  set(file.node("Concat", {"l", "r", "n", "mean", "rstd"}, "y"), "axis", 1);
  file.model().mutable_opset_import(0)->set_version(23);
  check_close(outputs_of(file, {1, 7}), {0.125F, 0.875F, 0.2F, 2.8F, -1, 3, 4, 1 / 3.0F});
  const Floats zeros = outputs_of(file, {0, 0});
  CHECK(zeros[0] == 0);
}

TEST_CASE("a swish may have a slope of its own, and values be cast like others") {
  FileBuilder file({2});
  file.tensor("like", {1}, {0});
  file.node("CastLike", {"x", "like"}, "c");
  auto& swish = file.node("Swish", {"c"}, "y");
  auto* alpha = swish.add_attribute();
  alpha->set_name("alpha");
  alpha->set_type(gpunn::onnx::AttributeProto::FLOAT);
  alpha->set_f(2);
  file.model().mutable_opset_import(0)->set_version(24);
  check_close(outputs_of(file, {1, -0.5F}), {0.8807971F, -0.1344707F});
}

TEST_CASE("Erfc, which tf2onnx writes for GELU, is 1 - erf") {
  FileBuilder file({3});
  file.node("Erfc", {"x"}, "y");
  check_close(outputs_of(file, {-1, 0, 0.5F}), {1.8427008F, 1, 0.4795001F});
}

TEST_CASE("an input that is normalised before it is turned to channels first is taken so") {
  FileBuilder file({1, 2, 3});  // rows, columns, channels
  file.tensor("scale", {}, {2});
  file.tensor("mean", {1, 1, 1, 3}, {1, 2, 3});
  file.node("Mul", {"x", "scale"}, "scaled");
  file.node("Sub", {"scaled", "mean"}, "normal");
  set(file.node("Transpose", {"normal"}, "image"), "perm", std::vector<int64_t>{0, 3, 1, 2});
  file.node("Relu", {"image"}, "y");
  check_close(outputs_of(file, {1, 2, 3, 4, 5, 6}), {1, 3, 4, 6, 7, 9});
}

TEST_CASE("a suppression of boxes that is not gpunn's is named") {
  FileBuilder file({3, 4});
  file.node("Identity", {"x"}, "boxes");
  file.integers("order", {0, 2, 1});
  file.integers("most", {5});
  file.tensor("overlap", {1}, {0.5F});
  file.node("NonMaxSuppression", {"boxes", "boxes", "most", "overlap", "overlap"}, "kept");
  set(file.node("Cast", {"kept"}, "y"), "to", 1);
  CHECK_THAT(refusal(file), Contains("1 node can't be imported") && Contains("NonMaxSuppression 'kept_node'") &&
                                Contains("as `gpunn export` writes them"));
}

TEST_CASE("a batch is not sliced or split, or joined to another") {
  for (const auto& [op, axis] : {std::pair{"Split", 0}, std::pair{"Concat", 0}, std::pair{"Gather", 0}}) {
    CAPTURE(op);
    FileBuilder file({2});
    file.integers("zero", {0});
    const bool gathers = std::string(op) == "Gather";
    const bool joins = std::string(op) == "Concat";
    const std::vector<std::string> inputs = gathers ? std::vector<std::string>{"x", "zero"}
                                            : joins ? std::vector<std::string>{"x", "x"}
                                                    : std::vector<std::string>{"x"};
    set(file.node(op, inputs, "y"), "axis", axis);
    CHECK_THAT(refusal(file), Contains("batch"));
  }
}

TEST_CASE("corners of a length that its factor does not make whole are refused") {
  FileBuilder file({1, 1, 5});
  file.tensor("factors", {4}, {1, 1, 1, 1.5F});
  auto& resize = file.node("Resize", {"x", "", "factors"}, "y");
  set_text(resize, "mode", "linear");
  set_text(resize, "coordinate_transformation_mode", "align_corners");
  CHECK_THAT(refusal(file), Contains("ONNX Runtime disagree"));
}

TEST_CASE("images are padded by zeros, cut by negative padding, and enlarged") {
  FileBuilder file({1, 2, 2});
  file.integers("pads", {0, 0, 1, -1, 0, 0, 0, 1});
  file.node("Pad", {"x", "pads"}, "p");  // [[0, 0], [2, 0], [4, 0]]
  file.tensor("scales", {4}, {1, 1, 1, 2});
  auto& resize = file.node("Resize", {"p", "", "scales"}, "y");
  set_text(resize, "mode", "nearest");
  check_close(outputs_of(file, {1, 2, 3, 4}), {0, 0, 0, 0, 2, 2, 0, 0, 4, 4, 0, 0});
  FileBuilder sizes({1, 1, 2});
  sizes.integers("to", {1, 1, 2, 4});
  auto& linear = sizes.node("Resize", {"x", "", "", "to"}, "y");
  set_text(linear, "mode", "linear");
  sizes.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(
      1);
  check_close(outputs_of(sizes, {0, 4}), {0, 1, 3, 4, 0, 1, 3, 4});
}

TEST_CASE("lines and images are resized to any size") {
  const auto line = [](const std::string& places, const std::string& mode, int64_t size) {
    FileBuilder file({1, 3});
    auto& input = *file.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    input.mutable_dim(0)->set_dim_value(1);
    file.integers("to", {1, 1, size});
    auto& resize = file.node("Resize", {"x", "", "", "to"}, "y");
    set_text(resize, "mode", mode);
    set_text(resize, "coordinate_transformation_mode", places);
    return outputs_of(file, {0, 4, 12});
  };
  check_close(line("align_corners", "linear", 5), {0, 2, 4, 8, 12});
  check_close(line("asymmetric", "nearest", 2), {0, 4});
  check_close(line("half_pixel", "linear", 2), {1, 10});
  check_close(line("align_corners", "cubic", 3), {0, 4, 12});
}

TEST_CASE("borders repeat, reflect or are a constant, and values are repeated") {
  const auto padded = [](const std::string& mode) {
    FileBuilder file({1, 3});
    file.integers("pads", {0, 0, 2, 0, 0, 2});
    file.tensor("two", {}, {2});
    set_text(file.node("Pad", {"x", "pads", "two"}, "y"), "mode", mode);
    return outputs_of(file, {1, 4, 9});
  };
  check_close(padded("edge"), {1, 1, 1, 4, 9, 9, 9});
  check_close(padded("reflect"), {9, 4, 1, 4, 9, 4, 1});
  check_close(padded("wrap"), {4, 9, 1, 4, 9, 1, 4});
  check_close(padded("constant"), {2, 2, 1, 4, 9, 2, 2});
  FileBuilder file({2, 1});
  file.integers("times", {1, 1, 3});
  file.node("Tile", {"x", "times"}, "y");
  check_close(outputs_of(file, {1, 2}), {1, 1, 1, 2, 2, 2});
}

TEST_CASE("convolutions of lines and transposed ones are those of images") {
  FileBuilder file({1, 4});
  file.tensor("w", {1, 1, 2}, {1, 10});
  set(file.node("Conv", {"x", "w"}, "c"), "pads", {1, 0});
  file.tensor("t", {1, 1, 2}, {1, 2});
  set(file.node("ConvTranspose", {"c", "t"}, "y"), "strides", std::vector<int64_t>{2});
  check_close(outputs_of(file, {1, 2, 3, 4}), {10, 20, 21, 42, 32, 64, 43, 86});
}

TEST_CASE("the last window of an average may be partly in the image") {
  FileBuilder file({1, 1, 3});
  auto& pool = file.node("AveragePool", {"x"}, "y");
  set(pool, "kernel_shape", {1, 2});
  set(pool, "strides", {1, 2});
  set(pool, "ceil_mode", 1);
  check_close(outputs_of(file, {1, 3, 5}), {2, 5});
}

TEST_CASE("norms over tokens, channels and groups") {
  FileBuilder file({2, 2});
  file.tensor("w", {2}, {1, 2});
  file.tensor("b", {2}, {10, 20});
  file.node("LayerNormalization", {"x", "w", "b"}, "y");
  check_close(outputs_of(file, {1, 3, 5, 5}), {9, 22, 10, 20}, 1e-4F);
  FileBuilder instance({2, 2});
  instance.tensor("w", {2}, {1, 2});
  instance.tensor("b", {2}, {10, 20});
  instance.node("InstanceNormalization", {"x", "w", "b"}, "y");
  check_close(outputs_of(instance, {1, 3, 0, 4}), {9, 11, 18, 22}, 1e-4F);
  FileBuilder groups({2, 2}, 18);
  groups.tensor("w", {1}, {3});
  groups.tensor("b", {1}, {10});
  set(groups.node("GroupNormalization", {"x", "w", "b"}, "y"), "num_groups", 1);
  check_close(outputs_of(groups, {1, 1, 3, 3}), {7, 7, 13, 13}, 1e-4F);
}

TEST_CASE("outputs that no layer gives are refused where they are read, and only there") {
  for (const bool read : {false, true}) {
    FileBuilder file({1, 4}, 12);
    auto& pool = file.node("MaxPool", {"x"}, read ? "m" : "y");
    set(pool, "kernel_shape", std::vector<int64_t>{2});
    pool.add_output("places");
    if (read) file.node("Add", {"m", "places"}, "y");
    if (read) {
      CHECK_THAT(refusal(file), Contains("gives the places of the maxima"));
    } else {
      check_close(outputs_of(file, {1, 4, 9, 2}), {4, 9, 9});
    }
  }
}

TEST_CASE("hard gates, means and bounds of several values") {
  FileBuilder file({2});
  file.node("HardSwish", {"x"}, "a");
  file.node("HardSigmoid", {"x"}, "b");
  file.node("Mean", {"a", "b", "x"}, "m");
  file.tensor("most", {}, {1});
  file.node("Min", {"m", "most"}, "y");
  const auto expected = [](float x) {
    const float swish = x * std::clamp(x / 6 + 0.5F, 0.0F, 1.0F), gate = std::clamp(0.2F * x + 0.5F, 0.0F, 1.0F);
    return std::min((swish + gate + x) / 3, 1.0F);
  };
  check_close(outputs_of(file, {-1, 4}), {expected(-1), expected(4)});
}

TEST_CASE("constants are computed at import, of any number of rows") {
  FileBuilder file({4, 1});
  file.integers("two", {2});
  file.integers("zero", {0});
  file.integers("one", {1});
  file.integers("rest", {-1});
  file.node("Shape", {"x"}, "s");
  file.node("Slice", {"s", "zero", "one"}, "n");
  file.node("Slice", {"s", "one", "two"}, "c");
  file.node("Div", {"c", "two"}, "half");
  set(file.node("Concat", {"n", "two", "half"}, "to"), "axis", 0);
  file.node("Reshape", {"x", "to"}, "pairs");
  set(file.node("Transpose", {"pairs"}, "swapped"), "perm", {0, 2, 1});
  set(file.node("Concat", {"n", "rest"}, "flat"), "axis", 0);
  file.node("Reshape", {"swapped", "flat"}, "y");  // the channel shuffle of ShuffleNet
  check_close(outputs_of(file, {1, 2, 3, 4, 5, 6, 7, 8}), {1, 3, 2, 4, 5, 7, 6, 8});
}

TEST_CASE("functions of the file are put where they are called") {
  FileBuilder file({2});
  auto* version = file.model().add_opset_import();
  version->set_domain("mine");
  version->set_version(1);
  auto* function = file.model().add_functions();
  function->set_name("Twice");
  function->set_domain("mine");
  function->add_input("in");
  function->add_output("out");
  function->add_attribute("slope");
  auto* own = function->add_opset_import();
  own->set_version(18);
  auto* leaky = function->add_node();
  leaky->set_op_type("LeakyRelu");
  leaky->add_input("in");
  leaky->add_output("mid");
  auto* reference = leaky->add_attribute();
  reference->set_name("alpha");
  reference->set_type(gpunn::onnx::AttributeProto::FLOAT);
  reference->set_ref_attr_name("slope");
  auto* add = function->add_node();
  add->set_op_type("Add");
  add->add_input("mid");
  add->add_input("mid");
  add->add_output("out");
  for (const auto& [from, to] : {std::pair{"x", "h"}, std::pair{"h", "y"}}) {
    auto& call = file.node("Twice", {from}, to);
    call.set_domain("mine");
    auto* slope = call.add_attribute();
    slope->set_name("slope");
    slope->set_type(gpunn::onnx::AttributeProto::FLOAT);
    slope->set_f(0.5F);
  }
  check_close(outputs_of(file, {1, -1}), {4, -1});
  // Itself within itself.
  leaky->set_op_type("Twice");
  leaky->set_domain("mine");
  CHECK_THAT(refusal(file), Contains("calls others, or itself"));
}

TEST_CASE("a constant is trained where it is a parameter of the file") {
  const TemporaryFolder folder;
  FileBuilder file({2, 1, 1});
  file.tensor("mean", {2, 1, 1}, {1, 2});
  file.node("Sub", {"x", "mean"}, "centred");  // of the input: how it was normalised
  file.tensor("w", {2, 2, 1, 1}, {1, 0, 0, 1});
  file.node("Conv", {"centred", "w"}, "c");
  file.tensor("scale", {2, 1, 1}, {3, 4});
  file.node("Mul", {"c", "scale"}, "scaled");
  file.tensor("half", {}, {0.5F});
  file.node("Mul", {"scaled", "half"}, "halved");
  file.node("Flatten", {"halved"}, "y");
  Network network = Network::load(file.save(folder));
  int trained = 0, kept = 0;
  for (const NetworkTensor& tensor : network.tensors()) {
    CAPTURE(tensor.name);
    (tensor.buffer ? kept : trained) += 1;
    CHECK(tensor.trainable == !tensor.buffer);
    const Floats values(network.read(tensor.name).begin(), network.read(tensor.name).end());
    if (tensor.buffer) {
      CHECK((values == Floats{-1, -2} || values == Floats{0.5F}));
    } else {
      CHECK((values == Floats{3, 4} || values.size() == 4));
    }
  }
  CHECK(trained == 2);
  CHECK(kept == 2);
  check_close(outputs_of(file, {2, 4}), {1.5F, 4});

  // A training leaves the constants, and the network that it gives goes into a file again.
  std::map<std::string, Floats> before;
  for (const NetworkTensor& tensor : network.tensors()) {
    before[tensor.name] = Floats(network.read(tensor.name).begin(), network.read(tensor.name).end());
  }
  Dataset data;
  data.name = kArrays;
  data.fields.target() = fields::target_field("class", {"0", "1"});
  data.unwatched = true;
  const Floats samples = {1, 2, 3, -1, 0, 1, 2, 2};
  data.train.samples = {DType::f32, {4, 2, 1, 1}};
  const auto bytes = std::as_bytes(std::span(samples));
  data.train.values.assign(bytes.begin(), bytes.end());
  data.train.fields[kLabelField] = fields::class_values({0, 1, 1, 0});
  network.train(data, {});
  for (const NetworkTensor& tensor : network.tensors()) {
    CAPTURE(tensor.name);
    const Floats now(network.read(tensor.name).begin(), network.read(tensor.name).end());
    CHECK((now == before.at(tensor.name)) == tensor.buffer);
  }
  network.save(folder / "trained.h5");
  export_onnx(folder / "trained.h5", folder / "trained.onnx");
  const ModelOptions options{.backend = "cpu", .threads = 1, .max_batch = 8};
  const Floats expected = first_output(Model::load(folder / "trained.h5", options), samples);
  check_close(first_output(Model::load(folder / "trained.onnx", options), samples), expected);
  ModelOptions half = options;
  half.precision = Precision::bf16;
  check_close(first_output(Model::load(folder / "trained.onnx", half), samples), expected, 0.05F);
}

TEST_CASE("a few bytes don't ask for any memory they like") {
  FileBuilder filled({2});
  filled.integers("huge", {int64_t{1} << 31, int64_t{1} << 31});
  filled.node("ConstantOfShape", {"huge"}, "c");
  filled.node("Add", {"x", "c"}, "y");
  CHECK_THAT(refusal(filled), Contains("larger than any network's"));
  FileBuilder expanded({2});
  expanded.integers("huge", {int64_t{1} << 30});
  expanded.tensor("one", {1}, {1});
  expanded.node("Expand", {"one", "huge"}, "c");
  expanded.node("Add", {"x", "c"}, "y");
  CHECK_THAT(refusal(expanded), Contains("larger than any network's"));
}

namespace {

// As PyTorch's dynamo exporter gathers the pixels of windows, whose numbers are [rows, window rows, columns, window
// columns, 2].
void gather_windows(FileBuilder& file, const Shape& windows, const std::vector<int64_t>& pixels) {
  Shape shape = windows;
  shape.push_back(2);
  file.integers("pixels", shape, pixels);
  set(file.node("Transpose", {"x"}, "pixels_first"), "perm", {2, 3, 0, 1});
  set(file.node("GatherND", {"pixels_first", "pixels"}, "gathered"), "batch_dims", int64_t{0});
  set(file.node("Transpose", {"gathered"}, "windows"), "perm", {4, 5, 0, 1, 2, 3});
}

FileBuilder mean_of_windows(const std::vector<int64_t>& pixels) {
  FileBuilder file({2, 2, 3}, 20);
  gather_windows(file, {1, 2, 2, 2}, pixels);
  file.integers("axes", {-3, -1});
  set(file.node("ReduceMean", {"windows", "axes"}, "y"), "keepdims", int64_t{0});
  return file;
}

// Of images of one row of five pixels: windows of 2, 3 and 2.
FileBuilder sum_of_windows(const Floats& sizes) {
  FileBuilder file({1, 1, 5}, 20);
  gather_windows(file, {1, 1, 3, 3}, {0, 0, 0, 1, 0, 2, 0, 1, 0, 2, 0, 3, 0, 3, 0, 4, 0, 4});
  file.truths("behind", {3, 3}, {0, 0, 1, 0, 0, 0, 0, 0, 1});
  file.tensor("zero", {}, {0});
  file.node("Where", {"behind", "zero", "windows"}, "masked");
  for (int64_t i = 0; i < 3; ++i) file.integers(std::to_string(i), Shape{}, {i});
  set(file.node("Gather", {"masked", "0"}, "row"), "axis", 3);
  for (const char* const i : {"0", "1", "2"}) {
    set(file.node("Gather", {"row", i}, std::string("term") + i), "axis", 4);
  }
  file.node("Add", {"term0", "term1"}, "two");
  file.node("Add", {"two", "term2"}, "sum");
  file.tensor("sizes", {3}, sizes);
  file.node("Div", {"sum", "sizes"}, "y");
  return file;
}

}  // namespace

TEST_CASE("the pixels that PyTorch gathers for an adaptive pooling are that pooling") {
  const FileBuilder mean = mean_of_windows({0, 0, 0, 1, 0, 1, 0, 2, 1, 0, 1, 1, 1, 1, 1, 2});
  check_close(outputs_of(mean, {1, 2, 3, 4, 5, 6, 0, 0, 8, 0, 0, 0}), {3, 4, 0, 2});
  check_close(outputs_of(sum_of_windows({2, 3, 2}), {1, 2, 6, 4, 8}), {1.5F, 4, 6});
  // Others are not.
  CHECK_THAT(refusal(mean_of_windows({0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0, 1, 0, 1, 0, 2})), Contains("GatherND"));
  CHECK_THAT(refusal(sum_of_windows({2, 2, 2})), Contains("GatherND"));
}
