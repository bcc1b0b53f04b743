// Recurrent nodes as exporters write them, and those that are refused; test_onnx_recurrent.py compares their numbers.
#include "onnx_files.hpp"

using namespace onnx_test;

namespace {

// h = relu(x + h / 2) over [steps, N, 1].
gpunn::onnx::NodeProto& halving(FileBuilder& file, const std::vector<std::string>& inputs, const std::string& output) {
  file.tensor("w", {1, 1, 1}, {1});
  file.tensor("r", {1, 1, 1}, {0.5F});
  auto& node = file.node("RNN", inputs, output);
  auto* names = node.add_attribute();
  names->set_name("activations");
  names->set_type(gpunn::onnx::AttributeProto::STRINGS);
  names->add_strings("Relu");
  return node;
}

void steps_first(FileBuilder& file) { set(file.node("Transpose", {"x"}, "s"), "perm", {1, 0, 2}); }

}  // namespace

TEST_CASE("a first state has as many rows as the batch, which is not its first dimension") {
  FileBuilder file({3, 1});
  steps_first(file);
  file.node("Shape", {"s"}, "shape");
  file.integers("second", {1});
  file.node("Gather", {"shape", "second"}, "rows");
  file.integers("one", {1});
  set(file.node("Concat", {"one", "rows", "one"}, "sizes"), "axis", 0);
  SECTION("of zeros") { file.node("ConstantOfShape", {"sizes"}, "h"); }
  SECTION("of a number") {
    file.tensor("start", {1, 1, 1}, {8});
    file.node("Expand", {"start", "sizes"}, "h");
  }
  const float first = file.graph().node().rbegin()->op_type() == "Expand" ? 4 : 0;
  halving(file, {"s", "w", "r", "", "", "h"}, "all");
  file.integers("directions", {1});
  file.node("Squeeze", {"all", "directions"}, "states");
  set(file.node("Transpose", {"states"}, "y"), "perm", {1, 0, 2});
  check_close(outputs_of(file, {4, 0, 2, 0, 1, 0}),
              {4 + first, 2 + first / 2, 3 + first / 4, first, 1 + first / 2, 0.5F + first / 4});
}

TEST_CASE("the mean of all steps has the batch in front where the steps were") {
  FileBuilder file({3, 1});
  steps_first(file);
  halving(file, {"s", "w", "r"}, "all");
  file.integers("directions", {1});
  file.node("Squeeze", {"all", "directions"}, "states");
  file.integers("steps", {0});
  SECTION("without the dimension") { set(file.node("ReduceMean", {"states", "steps"}, "y"), "keepdims", 0); }
  SECTION("with it") {
    file.node("ReduceMean", {"states", "steps"}, "kept");
    set(file.node("Transpose", {"kept"}, "y"), "perm", {1, 0, 2});
  }
  check_close(outputs_of(file, {4, 0, 2, 0, 1, 0}), {3, 0.5F});
}

TEST_CASE("recurrent nodes that layers can't stand for are refused with their reason") {
  FileBuilder file({3, 1});
  const auto why = [&] { return refusal(file); };
  SECTION("steps of all samples together") {
    halving(file, {"x", "w", "r"}, "y");
    CHECK_THAT(why(), Contains("'y_node'") && Contains("the batch must be dimension 1") && Contains("batch_first"));
  }
  SECTION("sequences of several lengths") {
    steps_first(file);
    file.integers("lengths", {3, 2});
    halving(file, {"s", "w", "r", "", "lengths"}, "y");
    CHECK_THAT(why(), Contains("a sequence of 2 of 3 steps"));
  }
  SECTION("first states that differ") {
    steps_first(file);
    file.tensor("h", {1, 2, 1}, {0, 1});
    halving(file, {"s", "w", "r", "", "", "h"}, "y");
    CHECK_THAT(why(), Contains("its first state differs between the rows of the batch"));
  }
  SECTION("a function without its numbers") {
    steps_first(file);
    halving(file, {"s", "w", "r"}, "y").mutable_attribute(0)->set_strings(0, "Affine");
    CHECK_THAT(why(), Contains("does not say the numbers of its activation Affine"));
  }
  SECTION("weights of another size") {
    steps_first(file);
    halving(file, {"s", "w", "r"}, "y");
    file.graph().mutable_initializer(0)->set_dims(2, 2);
    file.graph().mutable_initializer(0)->add_float_data(1);
    CHECK_THAT(why(), Contains("the weights are [1, 1, 2], expected [1, 1, 1]"));
  }
}

TEST_CASE("windows wider than their padding, with gaps, and over the dimensions of a volume") {
  FileBuilder file({1, 4});
  auto& pool = file.node("MaxPool", {"x"}, "y");
  set(pool, "kernel_shape", std::vector<int64_t>{2});
  SECTION("padding as wide as the window") {
    set(pool, "pads", std::vector<int64_t>{0, 2});
    set(pool, "strides", std::vector<int64_t>{2});
    const Floats y = outputs_of(file, {1, 2, 4, 3});
    REQUIRE(y.size() == 3);
    CHECK((y[0] == 2 && y[1] == 4 && std::isinf(y[2]) && y[2] < 0));
  }
  SECTION("gaps") {
    set(pool, "dilations", std::vector<int64_t>{2});
    check_close(outputs_of(file, {5, 2, 4, 3}), {5, 3});
  }
}
