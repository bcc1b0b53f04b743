#include "ops/op.hpp"

#include <set>

#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::ops;

namespace {

TensorType f32s(Shape shape) { return {DType::f32, std::move(shape)}; }

}  // namespace

TEST_CASE("every op of the catalogue has a name and a way to infer shapes") {
  std::set<std::string_view> names;
  for (const OpInfo* info : all_ops()) {
    CHECK(names.insert(info->name).second);
    CHECK(find_op(info->name) == info);
  }
  CHECK(names.size() == ops::all().size());
  CHECK(find_op("conv2d") == &op_info(GPUNN_OP_CONV2D));
  CHECK(find_op("nonsense") == nullptr);
}

TEST_CASE("bytes moved: every tensor once, but of a table only what is in use") {
  const auto bytes = [](int32_t op, std::vector<TensorType> inputs, std::vector<TensorType> outputs) {
    return bytes_of({op, {}, std::move(inputs), std::move(outputs)});
  };
  const TensorType index{DType::i32, {32}}, step{DType::i64, {}}, scalar{DType::f32, {}};
  CHECK(bytes(GPUNN_OP_ADD, {f32s({8}), f32s({8})}, {f32s({8})}) == 96);
  CHECK(bytes(GPUNN_OP_MATMUL, {f32s({2, 3}), f32s({3, 5})}, {f32s({2, 5})}) == 4 * (6 + 15 + 10));
  // In place: read and written.
  CHECK(bytes(GPUNN_OP_ADVANCE, {step}, {step}) == 16);
  // 32 of 60 000 images and labels.
  CHECK(bytes(GPUNN_OP_GATHER_NORMALIZE, {{DType::u8, {60000, 1, 28, 28}}, index, f32s({1}), f32s({1})},
              {f32s({32, 1, 28, 28})}) == 32 * 784 * (1 + 4) + 32 * 4 + 8);
  CHECK(bytes(GPUNN_OP_GATHER_ROWS, {{DType::i32, {60000}}, index}, {{DType::i32, {32}}}) == 3 * 32 * 4);
  CHECK(bytes(GPUNN_OP_TABLE_LOAD, {f32s({9000}), step}, {scalar}) == 16);
  CHECK(bytes(GPUNN_OP_TABLE_STORE, {f32s({4096}), step, scalar}, {f32s({4096})}) == 16);
}
