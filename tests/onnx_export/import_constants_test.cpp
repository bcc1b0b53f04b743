// Constants that are computed at import, in ONNX's types; tests/python compares random graphs with ONNX Runtime.
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "onnx_files.hpp"

using namespace gpunn;
using namespace onnx_test;

namespace {

using Type = gpunn::onnx::TensorProto;

template <class T>
void typed(FileBuilder& file, const std::string& name, Type::DataType type, const Shape& shape,
           const std::vector<T>& values) {
  auto* tensor = file.graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const int64_t size : shape) tensor->add_dims(size);
  const auto bytes = std::as_bytes(std::span(values));
  tensor->set_raw_data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// A file whose constant `c` of so many elements is added to its input.
FileBuilder seen(int64_t count, int64_t opset = 18) {
  FileBuilder file({count}, opset);
  set(file.node("Cast", {"c"}, "floats"), "to", 1);
  file.integers("row", {count});
  file.node("Reshape", {"floats", "row"}, "flat");
  file.node("Add", {"x", "flat"}, "y");
  return file;
}

Floats values_of(const FileBuilder& file, std::size_t count) { return outputs_of(file, Floats(count, 0)); }

}  // namespace

TEST_CASE("integers wrap in their own width, and divide towards 0") {
  FileBuilder bytes = seen(3);
  typed<int8_t>(bytes, "a", Type::INT8, {3}, {127, -128, 100});
  typed<int8_t>(bytes, "b", Type::INT8, {3}, {1, 1, 3});
  bytes.node("Mul", {"a", "b"}, "product");
  bytes.node("Add", {"product", "b"}, "c");
  CHECK(values_of(bytes, 3) == Floats{-128, -127, 47});
  FileBuilder large = seen(3);
  typed<uint64_t>(large, "a", Type::UINT64, {3}, {~uint64_t{0}, 1, 7});
  typed<uint64_t>(large, "b", Type::UINT64, {3}, {uint64_t{1} << 62, ~uint64_t{0}, 2});
  large.node("Div", {"a", "b"}, "quotient");
  large.node("Max", {"quotient", "b"}, "most");
  large.node("Greater", {"most", "a"}, "greater");
  set(large.node("Cast", {"greater"}, "one"), "to", Type::UINT64);
  large.node("Add", {"quotient", "one"}, "c");
  CHECK(values_of(large, 3) == Floats{3, 1, 3});
  FileBuilder signs = seen(4);
  signs.integers("a", {-7, 7, -7, 7});
  signs.integers("b", {2, -2, -2, 2});
  signs.node("Div", {"a", "b"}, "quotients");
  signs.node("Mod", {"a", "b"}, "floored");
  set(signs.node("Mod", {"a", "b"}, "truncated"), "fmod", 1);
  signs.integers("ten", {10});
  signs.node("Mul", {"quotients", "ten"}, "tens");
  signs.node("Mul", {"floored", "truncated"}, "signs");
  signs.node("Add", {"tens", "signs"}, "c");
  CHECK(values_of(signs, 4) == Floats{-31, -31, 31, 31});
}

TEST_CASE("floats are rounded once, to the type that they have") {
  FileBuilder half = seen(2);
  typed<uint16_t>(half, "a", Type::FLOAT16, {2}, {0x6800, 0x7BFF});  // 2048 and the largest, 65504
  typed<uint16_t>(half, "b", Type::FLOAT16, {2}, {0x3C00, 0x7BFF});  // 1
  half.node("Add", {"a", "b"}, "c");
  CHECK(values_of(half, 2) == Floats{2048, std::numeric_limits<float>::infinity()});
  FileBuilder wide = seen(1);
  typed<double>(wide, "a", Type::DOUBLE, {1}, {1 + std::ldexp(1.0, -40)});
  typed<double>(wide, "one", Type::DOUBLE, {}, {1});
  typed<double>(wide, "factor", Type::DOUBLE, {}, {std::ldexp(1.0, 40)});
  wide.node("Sub", {"a", "one"}, "rest");
  wide.node("Mul", {"rest", "factor"}, "c");
  CHECK(values_of(wide, 1) == Floats{1});
}

TEST_CASE("a cast gives truth values, cut bits and saturated eights") {
  FileBuilder truths = seen(4);
  truths.tensor("a", {4}, {100, 0, -0.0F, 0.25F});
  set(truths.node("Cast", {"a"}, "c"), "to", Type::BOOL);
  CHECK(values_of(truths, 4) == Floats{1, 0, 0, 1});
  FileBuilder narrow = seen(3);
  narrow.integers("a", {300, -1, 128});
  set(narrow.node("Cast", {"a"}, "c"), "to", Type::INT8);
  CHECK(values_of(narrow, 3) == Floats{44, -1, -128});
  for (const int64_t saturates : {0, 1}) {
    FileBuilder eight = seen(4, 19);
    eight.tensor("a", {4}, {1e6F, 464, 17, -0.001F});
    auto& cast = eight.node("Cast", {"a"}, "c");
    set(cast, "to", Type::FLOAT8E4M3FN);
    set(cast, "saturate", saturates);
    const Floats found = values_of(eight, 4);
    CHECK((saturates != 0 ? found[0] == 448 : std::isnan(found[0])));
    CHECK(found[1] == 448);
    CHECK(found[2] == 16);
    CHECK(found[3] == -0.001953125F);  // the smallest that there is, half of which would be a tie
  }
  FileBuilder open = seen(1);
  open.tensor("a", {1}, {3e9F});
  set(open.node("Cast", {"a"}, "c"), "to", Type::INT32);
  CHECK_THAT(refusal(open), Contains("makes int32 of 3"));
}

TEST_CASE("elements of half a byte and floats of a byte are read") {
  FileBuilder four = seen(3, 21);
  typed<uint8_t>(four, "a", Type::INT4, {3}, {0xF7, 0x08});  // 7, -1, -8
  set(four.node("Cast", {"a"}, "c"), "to", Type::INT32);
  CHECK(values_of(four, 3) == Floats{7, -1, -8});
  FileBuilder floats = seen(4, 23);
  typed<uint8_t>(floats, "c", Type::FLOAT4E2M1, {4}, {0x72, 0xF1});  // 1, 6, 0.5, -6
  CHECK(values_of(floats, 4) == Floats{1, 6, 0.5F, -6});
  FileBuilder eight = seen(3, 19);
  typed<uint8_t>(eight, "c", Type::FLOAT8E5M2FNUZ, {3}, {0x80, 0x7F, 0x01});
  const Floats found = values_of(eight, 3);
  CHECK(std::isnan(found[0]));
  CHECK(found[1] == 57344);
  CHECK(found[2] == std::ldexp(1.0F, -17));
  FileBuilder cut = seen(3, 21);
  typed<uint8_t>(cut, "c", Type::INT4, {3}, {0xF7});
  CHECK_THAT(refusal(cut), Contains("expected 2 bytes for int4[3], found 1"));
}

TEST_CASE("numbers are quantised by a scale for each block, with ties to even") {
  FileBuilder file = seen(4, 21);
  file.tensor("a", {1, 4}, {0.25F, 0.75F, 3, -9});
  file.tensor("scales", {1, 2}, {0.5F, 2});
  typed<int8_t>(file, "zeros", Type::INT8, {1, 2}, {10, -125});
  auto& quantize = file.node("QuantizeLinear", {"a", "scales", "zeros"}, "c");
  set(quantize, "axis", 1);
  set(quantize, "block_size", 2);
  CHECK(values_of(file, 4) == Floats{10, 12, -123, -128});
}

TEST_CASE("a size that depends on the batch is compared where all batches agree") {
  const auto reshaped_by = [](const auto& choose) {
    FileBuilder file({4});
    file.node("Shape", {"x"}, "shape");
    file.integers("none", {0});
    file.integers("one", {1});
    file.integers("two", {2});
    file.integers("rest", {-1});
    file.node("Slice", {"shape", "none", "one"}, "rows");
    choose(file);  // gives "n"
    set(file.node("Concat", {"n", "two", "rest"}, "to"), "axis", 0);
    file.node("Reshape", {"x", "to"}, "y");
    return file;
  };
  const FileBuilder narrow = reshaped_by([](FileBuilder& file) {
    set(file.node("Cast", {"rows"}, "of_32"), "to", Type::INT32);
    set(file.node("Cast", {"of_32"}, "of_64"), "to", Type::INT64);
    file.node("Max", {"of_64", "one"}, "most");  // a batch has a row at least
    file.node("Greater", {"most", "none"}, "is_some");
    file.node("Where", {"is_some", "most", "two"}, "n");
  });
  check_close(outputs_of(narrow, {1, 2, 3, 4}), {1, 2, 3, 4});
  const FileBuilder unknown = reshaped_by([](FileBuilder& file) {
    file.node("Less", {"rows", "two"}, "is_one");
    file.node("Where", {"is_one", "rows", "two"}, "n");
  });
  CHECK_THAT(refusal(unknown), Contains("compares the size of the batch with a number"));
  const FileBuilder byte = reshaped_by([](FileBuilder& file) {
    set(file.node("Cast", {"rows"}, "small"), "to", Type::INT8);
    set(file.node("Cast", {"small"}, "n"), "to", Type::INT64);
  });
  CHECK_THAT(refusal(byte), Contains("makes int8 of the size of the batch"));
}

TEST_CASE("constants that ONNX does not allow are refused, and those that take too long") {
  const auto refused = [](const auto& build) {
    FileBuilder file = seen(1);
    build(file);
    return refusal(file);
  };
  CHECK_THAT(refused([](FileBuilder& file) {
               file.tensor("a", {1}, {1});
               typed<double>(file, "b", Type::DOUBLE, {1}, {1});
               file.node("Add", {"a", "b"}, "c");
             }),
             Contains("takes float and double; ONNX wants one type"));
  CHECK_THAT(refused([](FileBuilder& file) {
               file.tensor("a", {2}, {1, 2});
               file.integers("at", {2});
               file.node("Gather", {"a", "at"}, "c");
             }),
             Contains("takes place 2 of a dimension of 2"));
  CHECK_THAT(refused([](FileBuilder& file) {
               file.integers("size", {2048, 2048});
               file.node("ConstantOfShape", {"size"}, "a");
               file.node("MatMul", {"a", "a"}, "c");
             }),
             Contains("multiplications at import"));
  CHECK_THAT(refused([](FileBuilder& file) {
               file.integers("a", {1, 0});
               file.node("Div", {"a", "a"}, "c");
             }),
             Contains("divides an integer by 0"));
}
