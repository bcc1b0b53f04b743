// Networks whose graph moves the batch, products of layers, and choices; on numbers that a few lines compute again.
#include <map>

#include "onnx_files.hpp"

using namespace gpunn;
using namespace onnx_test;

namespace {

// What follows is about tokens of four features in two heads, each sample of three tokens.
constexpr int64_t kTokens = 3, kHeads = 2, kFeatures = 4, kHead = kFeatures / kHeads;

float at(const Floats& x, int64_t sample, int64_t token, int64_t feature) {
  return x[static_cast<std::size_t>((sample * kTokens + token) * kFeatures + feature)];
}

// softmax(x x') x in each head of each sample.
Floats attended(const Floats& x) {
  Floats y(x.size(), 0);
  const int64_t samples = std::ssize(x) / (kTokens * kFeatures);
  for (int64_t row = 0; row < samples * kTokens * kHeads; ++row) {
    const int64_t n = row / (kTokens * kHeads), t = row / kHeads % kTokens, begin = row % kHeads * kHead;
    Floats weights(kTokens, 0);
    float sum = 0;
    for (int64_t s = 0; s < kTokens; ++s) {
      float score = 0;
      for (int64_t d = begin; d < begin + kHead; ++d) score += at(x, n, t, d) * at(x, n, s, d);
      sum += weights[static_cast<std::size_t>(s)] = std::exp(score);
    }
    for (int64_t d = begin; d < begin + kHead; ++d) {
      float& value = y[static_cast<std::size_t>((n * kTokens + t) * kFeatures + d)];
      for (int64_t s = 0; s < kTokens; ++s) value += weights[static_cast<std::size_t>(s)] / sum * at(x, n, s, d);
    }
  }
  return y;
}

Floats two_samples() {
  Floats x;
  for (int i = 0; i < 2 * kTokens * kFeatures; ++i) x.push_back(static_cast<float>((i * 7) % 11 - 5) / 5);
  return x;
}

void transpose(FileBuilder& file, const std::string& from, const std::string& to, const std::vector<int64_t>& order) {
  set(file.node("Transpose", {from}, to), "perm", order);
}

void attend(FileBuilder& file, const std::string& q, const std::string& turned_k, const std::string& v) {
  file.node("MatMul", {q, turned_k}, "scores");
  set(file.node("Softmax", {"scores"}, "weights"), "axis", -1);
  file.node("MatMul", {"weights", v}, "mixed");
}

}  // namespace

TEST_CASE("attention whose queries, keys and values are the first dimension") {
  FileBuilder file({kTokens, kFeatures});
  set(file.node("Concat", {"x", "x", "x"}, "qkv"), "axis", 2);
  file.integers("apart", {0, kTokens, 3, kHeads, kHead});
  file.node("Reshape", {"qkv", "apart"}, "five");
  transpose(file, "five", "first", {2, 0, 3, 1, 4});  // [3, N, heads, tokens, head]
  SECTION("taken by Gather") {
    for (const auto& [name, place] : std::map<std::string, int64_t>{{"q", 0}, {"k", 1}, {"v", 2}}) {
      file.integers(name + "_place", {}, {place});
      set(file.node("Gather", {"first", name + "_place"}, name), "axis", 0);
    }
  }
  SECTION("taken by Split and Squeeze") {
    auto& split = file.node("Split", {"first"}, "q1");
    split.add_output("k1");
    split.add_output("v1");
    set(split, "axis", 0);
    file.integers("front", {0});
    for (const std::string name : {"q", "k", "v"}) file.node("Squeeze", {name + "1", "front"}, name);
  }
  transpose(file, "k", "turned", {0, 1, 3, 2});
  attend(file, "q", "turned", "v");
  transpose(file, "mixed", "tokens", {0, 2, 1, 3});
  file.integers("together", {-1, kTokens, kFeatures});
  file.node("Reshape", {"tokens", "together"}, "y");
  check_close(outputs_of(file, two_samples()), attended(two_samples()));
}

TEST_CASE("attention of tokens in front of the batch, as PyTorch's layer computes it") {
  FileBuilder file({kTokens, kFeatures});
  transpose(file, "x", "first", {1, 0, 2});  // [tokens, N, features]
  file.integers("heads", {kTokens, -1, kHead});
  file.node("Reshape", {"first", "heads"}, "h");  // [tokens, N * heads, head]
  transpose(file, "h", "q", {1, 0, 2});
  transpose(file, "h", "turned", {1, 2, 0});
  attend(file, "q", "turned", "q");
  transpose(file, "mixed", "m", {1, 0, 2});
  file.integers("rows", {-1, kFeatures});
  file.node("Reshape", {"m", "rows"}, "r");  // [tokens * N, features]
  file.tensor("w", {kFeatures, kFeatures}, {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2});
  file.tensor("b", {kFeatures}, {1, 1, 1, 1});
  auto& gemm = file.node("Gemm", {"r", "w", "b"}, "g");
  set(gemm, "transB", 1);
  file.integers("back", {kTokens, -1, kFeatures});
  file.node("Reshape", {"g", "back"}, "t");
  file.tensor("c", {kTokens, 1, 1}, {0, 10, 20});
  file.node("Add", {"t", "c"}, "shifted");
  transpose(file, "shifted", "y", {1, 0, 2});
  Floats expected = attended(two_samples());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = 2 * expected[i] + 1 + 10 * static_cast<float>(i / kFeatures % kTokens);
  }
  check_close(outputs_of(file, two_samples()), expected);
}

TEST_CASE("windows of an image are samples of their own for a while") {
  FileBuilder file({4, 2});  // two windows of two rows
  file.integers("apart", {-1, 2, 2});
  file.node("Reshape", {"x", "apart"}, "w");  // [2*N, 2, 2]
  transpose(file, "w", "turned", {0, 2, 1});
  file.node("MatMul", {"w", "turned"}, "m");
  file.integers("together", {-1, 4, 2});
  file.node("Reshape", {"m", "together"}, "y");
  check_close(outputs_of(file, {1, 2, 3, 4, 0, 1, 1, 0}), {5, 11, 11, 25, 1, 0, 0, 1});
}

TEST_CASE("what mixes rows of the batch is refused") {
  FileBuilder file({2, 3});
  transpose(file, "x", "t", {1, 0, 2});
  SECTION("a softmax over it") {
    transpose(file, "x", "last", {1, 2, 0});
    set(file.node("Softmax", {"last"}, "s"), "axis", -1);
    transpose(file, "s", "y", {2, 0, 1});
    CHECK_THAT(refusal(file), Contains("Softmax 's_node'") && Contains("different rows of the batch"));
  }
  SECTION("some of its rows") {
    file.integers("place", {0});
    set(file.node("Gather", {"t", "place"}, "y"), "axis", 1);
    CHECK_THAT(refusal(file), Contains("takes rows of the batch"));
  }
  SECTION("a sum of values with it in different places") {
    file.node("Add", {"t", "x"}, "y");
    CHECK_THAT(refusal(file), Contains("[2, N, 3] and [N, 2, 3]") && Contains("in different places"));
  }
}

TEST_CASE("a constant token is put in front of each sample's, and another one behind") {
  FileBuilder file({2, 2});
  file.tensor("token", {1, 1, 2}, {7, 8});
  file.node("Shape", {"x"}, "shape");
  file.integers("zero", {0});
  file.node("Gather", {"shape", "zero"}, "rows");
  file.integers("rest", {1, 2});
  set(file.node("Concat", {"rows", "rest"}, "wanted"), "axis", 0);
  file.node("Expand", {"token", "wanted"}, "tokens");
  file.tensor("last", {1, 1, 2}, {-1, -2});
  set(file.node("Concat", {"tokens", "x", "last"}, "y"), "axis", 1);
  check_close(outputs_of(file, {1, 2, 3, 4, 5, 6, 7, 8}), {7, 8, 1, 2, 3, 4, -1, -2, 7, 8, 5, 6, 7, 8, -1, -2});
}

TEST_CASE("weights may be the first factor of a product") {
  FileBuilder file({2, 2});
  file.tensor("w", {3, 2}, {1, 0, 0, 1, 1, 1});
  file.node("MatMul", {"w", "x"}, "y");
  check_close(outputs_of(file, {1, 2, 3, 4}), {1, 2, 3, 4, 4, 6});
}

TEST_CASE("products of named dimensions") {
  const auto product = [](const std::string& equation, const Floats& weights, const Shape& shape) {
    FileBuilder file({2, 2});
    std::string other = "x";
    if (!weights.empty()) {
      file.tensor("w", shape, weights);
      other = "w";
    }
    set_text(file.node("Einsum", {"x", other}, "y"), "equation", equation);
    const std::string why = refusal(file);
    INFO(equation << ": " << why);
    REQUIRE(why.empty());
    return outputs_of(file, {1, 2, 3, 4});
  };
  check_close(product("nij,njk->nik", {}, {}), {7, 10, 15, 22});
  check_close(product("nij, nkj -> nki", {}, {}), {5, 11, 11, 25});
  check_close(product("nij,nij->ni", {}, {}), {5, 25});
  check_close(product("nij,jk->nik", {1, 0, 1, 0, 1, 1}, {2, 3}), {1, 2, 3, 3, 4, 7});
  check_close(product("nij,kj->nki", {1, 1}, {1, 2}), {3, 7});
  FileBuilder file({2, 2});
  set_text(file.node("Einsum", {"x", "x"}, "y"), "equation", "nij,mij->nm");
  CHECK_THAT(refusal(file), Contains("whose batches are in different places"));
}

TEST_CASE("the operator of attention, with a mask") {
  FileBuilder file({2, 2}, 23);
  file.truths("mask", {2, 2}, {1, 0, 1, 1});
  auto& node = file.node("Attention", {"x", "x", "x", "mask"}, "y");
  set(node, "q_num_heads", 1);
  set(node, "kv_num_heads", 1);
  // The first token sees itself alone; the second one both, of scores 0 and 1 / sqrt(2).
  const float share = 1 / (1 + std::exp(1 / std::sqrt(2.0F)));
  check_close(outputs_of(file, {1, 0, 0, 1}), {1, 0, share, 1 - share});
  FileBuilder hidden({2, 2}, 23);
  hidden.truths("mask", {2, 2}, {0, 0, 1, 1});
  auto& all = hidden.node("Attention", {"x", "x", "x", "mask"}, "y");
  set(all, "q_num_heads", 1);
  set(all, "kv_num_heads", 1);
  // A query from which all keys are hidden gets nothing.
  check_close(outputs_of(hidden, {1, 0, 0, 1}), {0, 0, share, 1 - share});
}

TEST_CASE("a value is chosen by a constant, or by data that are compared") {
  FileBuilder file({3});
  file.truths("mask", {3}, {1, 0, 1});
  file.tensor("lowest", {}, {-9});
  file.node("Where", {"mask", "x", "lowest"}, "masked");
  file.node("Where", {"mask", "lowest", "x"}, "kept");
  file.tensor("two", {}, {2});
  file.node("Greater", {"x", "two"}, "large");
  file.node("Neg", {"x"}, "negative");
  file.node("Where", {"large", "negative", "x"}, "turned");
  file.node("LessOrEqual", {"x", "two"}, "small");
  set(file.node("Cast", {"small"}, "number"), "to", 1);
  file.node("Sign", {"x"}, "sign");
  set(file.node("Concat", {"masked", "kept", "turned", "number", "sign"}, "y"), "axis", 1);
  check_close(outputs_of(file, {-1, 2, 3}), {-1, -9, 3, -9, 2, -9, -1, 2, -3, 1, 1, 0, -1, 1, 1});
  FileBuilder truths({3});
  truths.tensor("two", {}, {2});
  truths.node("Greater", {"x", "two"}, "y");
  check_close(outputs_of(truths, {-1, 2, 3}), {0, 0, 1});
  // What is not chosen may be infinite.
  FileBuilder infinite({2});
  infinite.tensor("one", {}, {1});
  infinite.node("Exp", {"x"}, "e");
  infinite.node("Greater", {"x", "one"}, "large");
  infinite.node("Where", {"large", "x", "e"}, "y");
  check_close(outputs_of(infinite, {1000, 0}), {1000, 1});
}

TEST_CASE("a mask may hide all of a row") {
  FileBuilder file({2, 2});
  file.tensor("mask", {2, 2}, {-INFINITY, -INFINITY, 0, 0});
  file.node("Add", {"x", "mask"}, "y");
  check_close(outputs_of(file, {1, 2, 3, 4}), {-INFINITY, -INFINITY, 3, 4});
}

TEST_CASE("every second of many values is taken") {
  FileBuilder file({200});
  file.integers("begin", {1});
  file.integers("end", {9999});
  file.integers("axis", {1});
  file.integers("step", {2});
  file.node("Slice", {"x", "begin", "end", "axis", "step"}, "y");
  Floats x, expected;
  for (int i = 0; i < 200; ++i) x.push_back(static_cast<float>(i));
  for (int i = 1; i < 200; i += 2) expected.push_back(static_cast<float>(i));
  check_close(outputs_of(file, x), expected);
}

TEST_CASE("means along channels, as in PyTorch's local response norm") {
  FileBuilder file({1, 3, 1, 2});
  auto& pool = file.node("AveragePool", {"x"}, "y");
  set(pool, "kernel_shape", std::vector<int64_t>{2, 1, 1});
  check_close(outputs_of(file, {1, 2, 3, 4, 5, 6}), {2, 3, 4, 5});
}

TEST_CASE("a mask is filled in piece by piece, and weights are normalised at import") {
  FileBuilder file({2, 2});
  file.tensor("zeros", {2, 2}, {0, 0, 0, 0});
  file.integers("place", {1, 2}, {1, 0});
  file.tensor("value", {1}, {5});
  file.node("ScatterND", {"zeros", "place", "value"}, "mask");
  file.node("Add", {"x", "mask"}, "a");
  file.tensor("w", {2, 2}, {3, 4, 0, 2});
  file.integers("last", {-1});
  file.node("ReduceL2", {"w", "last"}, "lengths");
  file.tensor("least", {}, {2});
  file.node("Clip", {"lengths", "least"}, "bounded");
  file.node("Div", {"w", "bounded"}, "normal");
  file.node("MatMul", {"a", "normal"}, "y");
  check_close(outputs_of(file, {1, 0, 0, 1}), {0.6F, 0.8F, 3, 5});
}

TEST_CASE("a part of a shape may be empty, and weights normalised by their own statistics") {
  FileBuilder file({1, 2});
  file.node("Shape", {"x"}, "shape");
  file.integers("three", {3});
  file.integers("end", {9});
  file.node("Slice", {"shape", "three", "end"}, "none");
  file.integers("wanted", {-1, 2});
  set(file.node("Concat", {"wanted", "none"}, "flat"), "axis", 0);
  file.node("Reshape", {"x", "flat"}, "f");
  file.tensor("w", {1, 2, 2}, {1, 3, 2, 6});
  file.tensor("ones", {2}, {1, 1});
  file.tensor("zeros", {2}, {0, 0});
  set(file.node("BatchNormalization", {"w", "ones", "zeros", "zeros", "ones"}, "n"), "training_mode", 1);
  file.integers("matrix", {2, 2});
  file.node("Reshape", {"n", "matrix"}, "m");
  file.node("MatMul", {"f", "m"}, "y");
  check_close(outputs_of(file, {1, 2}), {-3, 3});
}

TEST_CASE("a row becomes any other shape of as many values") {
  FileBuilder file({2, 3});
  file.integers("wide", {0, 3, 2});
  file.node("Reshape", {"x", "wide"}, "w");
  set(file.node("Transpose", {"w"}, "y"), "perm", {0, 2, 1});
  check_close(outputs_of(file, {1, 2, 3, 4, 5, 6}), {1, 3, 5, 2, 4, 6});
}

TEST_CASE("channels of rows of all samples are normalised") {
  FileBuilder file({2, 2});
  file.integers("rows", {-1, 2});
  file.node("Reshape", {"x", "rows"}, "r");
  file.tensor("scale", {2}, {1, 2});
  file.tensor("shift", {2}, {0, 1});
  file.tensor("mean", {2}, {1, 0});
  file.tensor("variance", {2}, {1, 4});
  file.node("BatchNormalization", {"r", "scale", "shift", "mean", "variance"}, "n");
  file.integers("back", {-1, 2, 2});
  file.node("Reshape", {"n", "back"}, "y");
  check_close(outputs_of(file, {1, 2, 3, 4}), {0, 3, 2, 5}, 1e-4F);
}
