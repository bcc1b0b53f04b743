#include <gpunn/random.h>

#include <cmath>
#include <limits>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& batches() {
  static const Runner made(gpunn::cpu::add_batch_kernels);
  return made;
}
const Runner& counters() {
  static const Runner made(gpunn::cpu::add_counter_kernels);
  return made;
}
const Runner& metrics() {
  static const Runner made(gpunn::cpu::add_metrics_kernels);
  return made;
}

gpunn_sample_attrs sample_attrs(int64_t rows, int32_t batch, bool shuffle, bool drop_last) {
  gpunn_sample_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  attrs.shuffle = shuffle ? 1 : 0;
  attrs.rows = rows;
  attrs.batch = batch;
  attrs.drop_last = drop_last ? 1 : 0;
  attrs.seed = 5;
  attrs.stream = 6;
  return attrs;
}

}  // namespace

TEST_CASE("an epoch of batches visits every row once") {
  const int64_t rows = GENERATE(1, 10, 64, 1000);
  const int32_t batch = GENERATE(1, 7, 64, 1500);
  const bool shuffle = GENERATE(false, true);
  const bool drop_last = GENERATE(false, true);
  if (drop_last && batch > rows) return;
  const auto attrs = sample_attrs(rows, batch, shuffle, drop_last);
  const int64_t steps = drop_last ? rows / batch : (rows + batch - 1) / batch;
  Tensor<int32_t> index({batch});
  Tensor<int32_t> count({});
  bool right = true;
  for (const int64_t epoch : {0, 3}) {
    std::vector<int> seen(static_cast<std::size_t>(rows), 0);
    for (int64_t k = 0; k < steps; ++k) {
      batches().run(GPUNN_OP_SAMPLE_INDICES, &attrs, {Tensor<int64_t>({}, {epoch * steps + k})}, {index, count});
      right = right && count[0] == std::min<int64_t>(batch, rows - k * batch);
      for (int32_t i = 0; i < batch; ++i) {
        const int64_t position = k * batch + i;
        const int64_t expected = position >= rows ? -1
                                 : !shuffle       ? position
                                                  : gpunn_random_permute(5, 6, epoch, static_cast<uint32_t>(rows),
                                                                         static_cast<uint32_t>(position));
        right = right && index[i] == expected;
        if (index[i] >= 0) ++seen[static_cast<std::size_t>(index[i])];
      }
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == (drop_last ? steps * batch : rows));
  }
  CHECK(right);
  CHECK(index.intact());
}

TEST_CASE("a large batch is the same at any number of threads") {
  const auto attrs = sample_attrs(50000, 4099, true, false);
  Tensor<int32_t> index({4099});
  Tensor<int32_t> count({});
  on_each_machine(index, [&] {
    batches().run(GPUNN_OP_SAMPLE_INDICES, &attrs, {Tensor<int64_t>({}, {20})}, {index, count});
  });
}

TEST_CASE("gathered rows, as f32 or i32") {
  Random random(101);
  Tensor<uint8_t> u8({50, 3, 2});
  Tensor<int32_t> i32(u8.shape());
  Tensor<int64_t> i64(u8.shape());
  Tensor<float> f32(u8.shape());
  for (int64_t i = 0; i < u8.size(); ++i) {
    u8[i] = static_cast<uint8_t>(random.integer(0, 255));
    i32[i] = static_cast<int32_t>(u8[i]) - 300;
    i64[i] = i32[i];
    f32[i] = static_cast<float>(u8[i]);
  }
  const Tensor<int32_t> index({6}, {49, 0, -1, 7, 50, INT32_MIN});
  const auto check = [&](auto& data, auto& y) {
    batches().run(GPUNN_OP_GATHER_ROWS, nullptr, {data, index}, {y});
    bool right = true;
    for (int64_t row = 0; row < 6; ++row) {
      const bool known = index[row] >= 0 && index[row] < 50;
      for (int64_t i = 0; i < 6; ++i) {
        const auto expected = known ? static_cast<double>(data[index[row] * 6 + i]) : 0.0;
        right = right && static_cast<double>(y[row * 6 + i]) == expected;
      }
    }
    CHECK(right);
    CHECK(y.intact());
  };
  Tensor<uint8_t> y8({6, 3, 2});
  Tensor<int32_t> y32({6, 3, 2});
  Tensor<float> yf({6, 3, 2});
  check(u8, y32);
  check(i32, y32);
  check(i64, y32);
  check(f32, yf);
  CHECK_THAT(batches().refusal(GPUNN_OP_GATHER_ROWS, nullptr, {u8, index}, {y8}), Contains("y must be i32[6, 3, 2]"));
}

TEST_CASE("labels are gathered from one-dimensional data") {
  const Tensor<uint8_t> labels({4}, {7, 8, 9, 255});
  const Tensor<int32_t> index({3}, {3, -1, 1});
  Tensor<int32_t> y({3});
  batches().run(GPUNN_OP_GATHER_ROWS, nullptr, {labels, index}, {y});
  CHECK(y.values() == std::vector<int32_t>{255, 0, 8});
}

TEST_CASE("gather and normalise by channel") {
  const Shape row = GENERATE(Shape{1, 28, 28}, Shape{3, 5, 7}, Shape{4}, Shape{2, 1});
  const int64_t rows = 60;
  const int64_t batch = GENERATE(0, 1, 128);
  Shape shape{rows};
  shape.insert(shape.end(), row.begin(), row.end());
  Random random(111);
  Tensor<uint8_t> bytes(shape);
  for (uint8_t& value : bytes) value = static_cast<uint8_t>(random.integer(0, 255));
  const Tensor<float> numbers = random.tensor(shape);
  const Tensor<float> scale = random.tensor({row[0]});
  const Tensor<float> shift = random.tensor({row[0]});
  Tensor<int32_t> index({batch});
  for (int32_t& i : index) i = static_cast<int32_t>(random.integer(-3, rows + 2));
  shape[0] = batch;
  Tensor<float> y(shape);
  const int64_t size = count_of(row);
  const auto expected = [&](const auto& data) {
    std::vector<double> values;
    for (int64_t i = 0; i < y.size(); ++i) {
      const int32_t from = index[i / size];
      const int64_t c = i % size / (size / row[0]);
      const bool known = from >= 0 && from < rows;
      values.push_back(known ? static_cast<double>(data[from * size + i % size]) * static_cast<double>(scale[c]) +
                                   static_cast<double>(shift[c])
                             : 0.0);
    }
    return values;
  };
  on_each_machine(y, [&] {
    batches().run(GPUNN_OP_GATHER_NORMALIZE, nullptr, {bytes, index, scale, shift}, {y});
    CHECK(worst_error(y, expected(bytes)) < 3e-5);
  });
  on_each_machine(y, [&] {
    batches().run(GPUNN_OP_GATHER_NORMALIZE, nullptr, {numbers, index, scale, shift}, {y});
    CHECK(worst_error(y, expected(numbers)) < 1e-6);
  });
}

TEST_CASE("batch ops refuse nonsense") {
  Tensor<int32_t> index({4});
  Tensor<int32_t> count({});
  const Tensor<int64_t> step({});
  const auto sample = [&](int64_t rows, int32_t batch, bool drop_last) {
    const auto attrs = sample_attrs(rows, batch, true, drop_last);
    return batches().refusal(GPUNN_OP_SAMPLE_INDICES, &attrs, {step}, {index, count});
  };
  CHECK(sample(9, 4, true).empty());
  CHECK_THAT(sample(0, 4, false), Contains("must be in [1, 2147483647]"));
  CHECK_THAT(sample(int64_t{1} << 31, 4, false), Contains("must be in [1, 2147483647]"));
  CHECK_THAT(sample(9, 0, false), Contains("batch"));
  CHECK_THAT(sample(9, -4, false), Contains("batch"));
  CHECK_THAT(sample(3, 4, true), Contains("larger than the 3 rows"));
  CHECK_THAT(sample(9, 5, false), Contains("index must be i32[5], is i32[4]"));
  const Tensor<float> data({9, 3});
  Tensor<int32_t> whole({4, 3});
  Tensor<float> y({4, 3});
  const Tensor<float> scale({2});
  CHECK_THAT(batches().refusal(GPUNN_OP_GATHER_ROWS, nullptr, {data, index}, {whole}), Contains("y must be"));
  CHECK_THAT(batches().refusal(GPUNN_OP_GATHER_ROWS, nullptr, {data, index}, {View(GPUNN_F32, {4, 2})}),
             Contains("[4, 3], is f32[4, 2]"));
  CHECK_THAT(batches().refusal(GPUNN_OP_GATHER_NORMALIZE, nullptr, {data, index, scale, scale}, {y}),
             Contains("scale must be f32[C] = [3], is f32[2]"));
  CHECK_THAT(batches().refusal(GPUNN_OP_GATHER_ROWS, nullptr, {count, index}, {count}), Contains("data must be"));
}

TEST_CASE("counters and tables") {
  Tensor<int64_t> counter({}, {41});
  const gpunn_advance_attrs three{sizeof(three), 0, 3};
  counters().run(GPUNN_OP_ADVANCE, &three, {counter}, {counter});
  CHECK(counter[0] == 44);

  Tensor<float> table({3}, {10, 20, 30});
  Tensor<float> y({});
  const auto load = [&](int64_t step) {
    counters().run(GPUNN_OP_TABLE_LOAD, nullptr, {table, Tensor<int64_t>({}, {step})}, {y});
    return y[0];
  };
  CHECK(load(0) == 10.0F);
  CHECK(load(2) == 30.0F);
  CHECK(load(1000) == 30.0F);
  CHECK(load(-1) == 10.0F);
  const auto store = [&](int64_t step, float value) {
    counters().run(GPUNN_OP_TABLE_STORE, nullptr, {table, Tensor<int64_t>({}, {step}), Tensor<float>({}, {value})},
                   {table});
    return table.values();
  };
  CHECK(store(4, 7) == std::vector<float>{10, 7, 30});
  CHECK(store(3, 8) == std::vector<float>{8, 7, 30});
  CHECK(store(-1, 9) == std::vector<float>{8, 7, 9});
  CHECK(table.intact());
  CHECK_THAT(counters().refusal(GPUNN_OP_TABLE_LOAD, nullptr, {View(GPUNN_F32, {0}), counter}, {y}),
             Contains("T must not be 0"));
  CHECK_THAT(counters().refusal(GPUNN_OP_ADVANCE, nullptr, {counter}, {counter}), Contains("attributes"));
}

TEST_CASE("metrics count the rank of the label among the classes") {
  // Rows: first; tied with a smaller index; tied with a larger index; sixth; NaN; past the count.
  const Tensor<float> x({6, 7}, {9, 1, 2, 3, 4, 5, 6,     //
                                 5, 5, 0, 0, 0, 0, 0,     //
                                 5, 5, 0, 0, 0, 0, 0,     //
                                 1, 2, 3, 4, 5, 6, 7,     //
                                 9, 1, 2, 3, 4, 5, kNan,  //
                                 9, 1, 2, 3, 4, 5, 6});
  const Tensor<int32_t> label({6}, {0, 1, 0, 1, 0, 0});
  const Tensor<float> loss({6}, {0.5F, 1, 2, 3, 4, kNan});
  Tensor<double> totals({4}, {100, 200, 300, 400});
  metrics().run(GPUNN_OP_METRICS_ACCUMULATE, nullptr, {loss, Tensor<int32_t>({}, {5}), totals, x, label}, {totals});
  CHECK(totals.values() == std::vector<double>{110.5, 202, 303, 405});
  metrics().run(GPUNN_OP_METRICS_ACCUMULATE, nullptr, {loss, Tensor<int32_t>({}, {2}), totals}, {totals});
  CHECK(totals.values() == std::vector<double>{112, 202, 303, 407});
  metrics().run(GPUNN_OP_METRICS_ACCUMULATE, nullptr, {loss, Tensor<int32_t>({}, {-1}), totals}, {totals});
  CHECK(totals.values() == std::vector<double>{112, 202, 303, 407});
  metrics().run(GPUNN_OP_METRICS_ACCUMULATE, nullptr, {loss, Tensor<int32_t>({}, {100}), totals}, {totals});
  CHECK(std::isnan(totals[0]));
  CHECK(totals[3] == 413);
  CHECK(totals.intact());
}

TEST_CASE("a label that names no class counts nowhere") {
  const Tensor<float> x({3, 2}, {1, 2, 1, 2, 1, 2});
  const Tensor<int32_t> label({3}, {-1, 2, 1});
  const Tensor<float> loss({3}, {1, 1, 1});
  Tensor<double> totals({4}, {0, 0, 0, 0});
  metrics().run(GPUNN_OP_METRICS_ACCUMULATE, nullptr, {loss, Tensor<int32_t>({}, {3}), totals, x, label}, {totals});
  CHECK(totals.values() == std::vector<double>{3, 1, 1, 3});
  CHECK_THAT(
      metrics().refusal(GPUNN_OP_METRICS_ACCUMULATE, nullptr, {loss, Tensor<int32_t>({}, {3}), totals, x}, {totals}),
      Contains("together"));
}
