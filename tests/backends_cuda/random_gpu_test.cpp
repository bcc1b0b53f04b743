// Random numbers of a GPU are those of the cpu backend, to the bit.
#include <gpunn/ops.h>

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "gpu.hpp"

using gpunn::DType;
using gpunn::TensorType;
using gpunn::execution::Backend;
using gpunn::execution::Buffer;
using gpunn::graph::Attributes;
using gpunn::graph::OpSignature;

namespace {

constexpr uint64_t kSeed = 0x9E3779B97F4A7C15ULL;
constexpr uint64_t kStream = 0x0123456789ABCDEFULL;

// The last two: a block number beyond 2^62, and one that wraps round.
const std::vector<int64_t> kCounters = {
    0, 1, 5'000'000'000, int64_t{1} << 40, int64_t{3} << 41, int64_t{1} << 60, std::numeric_limits<int64_t>::max()};
constexpr int64_t kLarge = (int64_t{1} << 24) + 3;

Attributes draw(int64_t n, float low, float high) {
  gpunn_random_attrs attrs{};
  attrs.rank = 1;
  attrs.dim[0] = n;
  attrs.seed = kSeed;
  attrs.stream = kStream;
  attrs.low = low;
  attrs.high = high;
  return Attributes::of(attrs);
}

// The only output of an op one of whose inputs is the counter, i64; the others are as many numbers of x as they hold.
template <class T>
std::vector<T> run(Backend& backend, const OpSignature& signature, int64_t counter, const std::vector<float>& x = {}) {
  const auto placement = backend.place(signature);
  REQUIRE(placement.level >= 0);
  auto kernel = backend.create(signature, placement.level);
  std::vector<Buffer> buffers;
  std::vector<gpunn_tensor> inputs;
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    const TensorType& type = signature.inputs[i];
    buffers.push_back(backend.allocate(type.bytes()));
    const bool is_counter = type.dtype == DType::i64;
    backend.upload(buffers.back().data(), is_counter ? static_cast<const void*>(&counter) : x.data(), type.bytes());
    inputs.push_back(gpunn::execution::abi_tensor(type, buffers.back().data()));
  }
  const TensorType& type = signature.outputs[0];
  const Buffer output = backend.allocate(type.bytes());
  const gpunn_tensor y = gpunn::execution::abi_tensor(type, output.data());
  kernel.enqueue(inputs, {&y, 1}, nullptr, "a draw");
  return gpu::read<T>(backend, output, static_cast<std::size_t>(type.elements()));
}

OpSignature drawn(int32_t op, DType type, int64_t n, float low, float high) {
  return {op, draw(n, low, high), {{DType::i64, {}}}, {{type, {n}}}};
}

}  // namespace

TEST_CASE("uniform numbers, permutations and dropout are the cpu's bits, far along and at any counter") {
  Backend cpu(gpu::registry(), "cpu"), cuda(gpu::registry(), "cuda_naive");
  for (const int64_t counter : kCounters) {
    INFO("counter " << counter);
    for (const int64_t n : {int64_t{1}, int64_t{6}, kLarge}) {
      const OpSignature uniform = drawn(GPUNN_OP_RANDOM_UNIFORM, DType::f32, n, -0.3F, 0.7F);
      CHECK(run<float>(cuda, uniform, counter) == run<float>(cpu, uniform, counter));

      gpunn_dropout_attrs attrs{};
      attrs.p = 0.3F;
      attrs.seed = kSeed;
      attrs.stream = kStream;
      const OpSignature dropout{
          GPUNN_OP_DROPOUT, Attributes::of(attrs), {{DType::f32, {n}}, {DType::i64, {}}}, {{DType::f32, {n}}}};
      std::vector<float> x(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0F + static_cast<float>(i % 1021);
      CHECK(run<float>(cuda, dropout, counter, x) == run<float>(cpu, dropout, counter, x));
    }
    for (const int64_t n : {int64_t{1}, int64_t{60000}, int64_t{1281167}}) {
      const OpSignature permutation = drawn(GPUNN_OP_RANDOM_PERMUTATION, DType::i32, n, 0, 0);
      CHECK(run<int32_t>(cuda, permutation, counter) == run<int32_t>(cpu, permutation, counter));
    }
  }
}

TEST_CASE("images are moved, mirrored and blanked to the cpu's bits") {
  Backend cpu(gpu::registry(), "cpu"), cuda(gpu::registry(), "cuda_naive");
  const TensorType images{DType::f32, {61, 3, 33, 29}};
  std::vector<float> x(static_cast<std::size_t>(images.elements()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.1F - 7.0F;
  gpunn_random_shift_attrs attrs{};
  attrs.reach[0] = 3;
  attrs.reach[1] = 5;
  attrs.flip = 0.5F;
  attrs.seed = kSeed;
  attrs.stream = kStream;
  const OpSignature shift{
      GPUNN_OP_RANDOM_SHIFT, Attributes::of(attrs), {images, {DType::i64, {}}, {DType::f32, {3}}}, {images}};
  gpunn_random_erase_attrs blank{};
  blank.size[0] = 7;
  blank.size[1] = 10;
  blank.p = 0.5F;
  blank.seed = kSeed;
  blank.stream = kStream;
  const OpSignature erase{
      GPUNN_OP_RANDOM_ERASE, Attributes::of(blank), {images, {DType::i64, {}}, {DType::f32, {3}}}, {images}};
  for (const int64_t counter : kCounters) {
    INFO("counter " << counter);
    CHECK(run<float>(cuda, shift, counter, x) == run<float>(cpu, shift, counter, x));
    CHECK(run<float>(cuda, erase, counter, x) == run<float>(cpu, erase, counter, x));
  }
}

// In f64 and rounded once: where logarithm or cosine differ in their last bit, hardly ever anything is seen of it.
TEST_CASE("normal numbers are the cpu's but for a last bit now and then") {
  Backend cpu(gpu::registry(), "cpu"), cuda(gpu::registry(), "cuda_naive");
  for (const int64_t counter : {int64_t{0}, int64_t{5'000'000'000}}) {
    const OpSignature normal = drawn(GPUNN_OP_RANDOM_NORMAL, DType::f32, kLarge, 0.5F, 2.0F);
    const std::vector<float> a = run<float>(cuda, normal, counter), b = run<float>(cpu, normal, counter);
    int64_t different = 0, wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      different += a[i] != b[i] ? 1 : 0;
      wrong += std::nextafter(a[i], b[i]) != b[i] ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(different < 16);  // of 16 million
  }
}
