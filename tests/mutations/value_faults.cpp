#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "mutant.hpp"

namespace mutations {

namespace {

// Each number of each f32 output, behind the kernel.
Fault changed(std::string name, float (*change)(float y, int64_t index)) {
  return {.name = std::move(name),
          .enqueue =
              [change](Call& call, gpunn_error* error) {
                const gpunn_status status = call.run(error);
                real().stream_sync(call.stream, nullptr);
                for (uint32_t i = 0; i < call.args.n_outputs; ++i) {
                  if (call.out(i).dtype != GPUNN_F32) continue;
                  auto* y = static_cast<float*>(call.out(i).data);
                  for (int64_t k = 0; k < elements(call.out(i)); ++k) y[k] = change(y[k], k);
                }
                return status;
              },
          .host_only = true};
}

// Each number of half precision is the next towards zero.
Fault half_a_step_off(std::string name) {
  return {.name = std::move(name),
          .enqueue =
              [](Call& call, gpunn_error* error) {
                const gpunn_status status = call.run(error);
                real().stream_sync(call.stream, nullptr);
                for (uint32_t i = 0; i < call.args.n_outputs; ++i) {
                  if (call.out(i).dtype != GPUNN_BF16 && call.out(i).dtype != GPUNN_F16) continue;
                  auto* y = static_cast<uint16_t*>(call.out(i).data);
                  for (int64_t k = 0; k < elements(call.out(i)); ++k) y[k] -= (y[k] & 0x7FFFU) != 0 ? 1 : 0;
                }
                return status;
              },
          .host_only = true};
}

// The kernel sees inputs that were changed before; those of f32, or those of i32, which are labels and indices.
template <class T>
Fault seen(std::string name, int32_t dtype, T (*change)(T x)) {
  return {.name = std::move(name),
          .enqueue =
              [dtype, change](Call& call, gpunn_error* error) {
                std::vector<std::pair<T*, std::vector<T>>> before;
                for (uint32_t i = 0; i < call.args.n_inputs; ++i) {
                  if (call.in(i).dtype != dtype || call.in(i).rank == 0) continue;
                  auto* x = static_cast<T*>(call.in(i).data);
                  before.emplace_back(x, std::vector<T>(x, x + elements(call.in(i))));
                }
                for (auto& [x, values] : before) {
                  for (std::size_t k = 0; k < values.size(); ++k) x[k] = change(values[k]);
                }
                const gpunn_status status = call.run(error);
                real().stream_sync(call.stream, nullptr);
                for (auto& [x, values] : before) {
                  bool is_output = false;
                  for (uint32_t i = 0; i < call.args.n_outputs; ++i) is_output = is_output || call.out(i).data == x;
                  if (!is_output) std::memcpy(x, values.data(), values.size() * sizeof(T));
                }
                return status;
              },
          .host_only = true};
}

float bf16(float y) {
  uint32_t bits = 0;
  std::memcpy(&bits, &y, sizeof(bits));
  bits = (bits + 0x8000U) & 0xFFFF0000U;
  std::memcpy(&y, &bits, sizeof(bits));
  return y;
}

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

std::vector<Fault> value_faults() {
  return {
      changed("nan-becomes-zero", [](float y, int64_t) { return std::isnan(y) ? 0.0F : y; }),
      changed("infinity-becomes-the-largest-number",
              [](float y, int64_t) { return std::isinf(y) ? std::copysign(kLargest, y) : y; }),
      changed("infinity-becomes-nan",
              [](float y, int64_t) { return std::isinf(y) ? std::numeric_limits<float>::quiet_NaN() : y; }),
      changed("large-numbers-become-infinite",
              [](float y, int64_t) { return std::abs(y) > 1e25F ? std::copysign(kInfinity, y) : y; }),
      changed("large-numbers-are-clipped",
              [](float y, int64_t) { return std::abs(y) > 1e14F && !std::isinf(y) ? std::copysign(1e14F, y) : y; }),
      changed("small-numbers-become-zero", [](float y, int64_t) { return std::abs(y) < 1e-25F ? 0.0F : y; }),
      changed("zero-becomes-something", [](float y, int64_t) { return y == 0 ? 1e-3F : y; }),
      changed("off-by-a-thousandth", [](float y, int64_t) { return y * 1.001F; }),
      changed("one-element-off-by-a-thousandth", [](float y, int64_t k) { return k == 5 ? y * 1.001F : y; }),
      changed("a-thousandth-added", [](float y, int64_t) { return y + 1e-3F; }),
      half_a_step_off("half-precision-cut-off"),
      changed("rounded-to-bf16", [](float y, int64_t) { return bf16(y); }),
      changed("one-sign-wrong", [](float y, int64_t k) { return k == 3 ? -y : y; }),
      changed("negative-becomes-zero", [](float y, int64_t) { return y < 0 ? 0.0F : y; }),
      changed("above-a-hundred-is-clipped", [](float y, int64_t) { return y > 100 && !std::isinf(y) ? 100.0F : y; }),
      seen<float>("reads-nan-as-zero", GPUNN_F32, [](float x) { return std::isnan(x) ? 0.0F : x; }),
      seen<float>("reads-infinity-as-the-largest-number", GPUNN_F32,
                  [](float x) { return std::isinf(x) ? std::copysign(kLargest, x) : x; }),
      seen<float>("reads-bf16", GPUNN_F32, [](float x) { return bf16(x); }),
      seen<float>("reads-small-numbers-as-zero", GPUNN_F32, [](float x) { return std::abs(x) < 1e-12F ? 0.0F : x; }),
      seen<int32_t>("reads-minus-one-as-zero", GPUNN_I32, [](int32_t x) { return x == -1 ? 0 : x; }),
      seen<int32_t>("reads-the-most-negative-as-zero", GPUNN_I32,
                    [](int32_t x) { return x == std::numeric_limits<int32_t>::min() ? 0 : x; }),
      seen<int32_t>("reads-the-largest-as-zero", GPUNN_I32,
                    [](int32_t x) { return x == std::numeric_limits<int32_t>::max() ? 0 : x; }),
      seen<int32_t>("reads-an-index-without-its-sign", GPUNN_I32, [](int32_t x) { return x < 0 ? -(x + 1) : x; }),
  };
}

}  // namespace mutations
