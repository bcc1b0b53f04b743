// How a family registers an op: it writes
//
//   struct ReluPlan { ... };                              // all that enqueue needs
//   ReluPlan plan_relu(const OpDesc& desc);               // may throw Refusal
//   void run_relu(const ReluPlan& plan, const OpArgs& args);
//   add_op(device, GPUNN_OP_RELU, plan_relu, run_relu);
//
// and the query is plan_relu's success, of a desc that is as the op's row declares. A plan with a member
// workspace_bytes gets that much scratch memory; one with a member score offers the kernel at that score.
#pragma once

#include <gpunn/float_formats.hpp>
#include <gpunn/kernel.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "common/requirements.hpp"
#include "simd/lanes/half.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {

using namespace backends;

// Serves `op` by plan_of(desc) at query and creation, and run(plan, args) at each enqueue. Any callables.
template <class PlanOf, class Run>
void serve(plugin::Device& device, int32_t op, PlanOf plan_of, Run run, Dtypes dtypes = Dtypes::f32,
           Layouts layouts = Layouts::packed, const std::string& name = {}) {
  device.add(op, {.query =
                      [plan_of](const OpDesc& desc) {
                        [[maybe_unused]] const auto plan = plan_of(desc);
                        plugin::Support support = plugin::Support::yes();
                        if constexpr (requires { plan.workspace_bytes; })
                          support.workspace_bytes = plan.workspace_bytes;
                        if constexpr (requires { plan.score; }) support.score = plan.score;
                        return support;
                      },
                  .create =
                      [plan_of, run](const OpDesc& desc) {
                        return plugin::make_kernel(
                            [plan = plan_of(desc), run](plugin::Stream&, const OpArgs& args) { run(plan, args); });
                      },
                  .name = name,
                  .half = dtypes == Dtypes::floating,
                  .channels_last = layouts == Layouts::channels_last_too});
}

template <class Plan>
void add_op(plugin::Device& device, int32_t op, Plan (*plan_of)(const OpDesc&), void (*run)(const Plan&, const OpArgs&),
            Dtypes dtypes = Dtypes::f32, Layouts layouts = Layouts::packed) {
  serve(device, op, plan_of, run, dtypes, layouts);
}

// What calls the function that of(T()) gives, T being the type of an input: float, BFloat16 or Half.
//
//   serve(device, GPUNN_OP_CLAMP, clamp_of, each_floating([](auto x) { return run_clamp<decltype(x)>; }),
//         Dtypes::floating);
template <class Of>
auto each_floating(Of of, std::size_t input = 0) {
  return [input, f32 = of(float()), bf16 = of(BFloat16()), f16 = of(Half())](const auto& plan, const OpArgs& args) {
    switch (args.input(input).dtype) {
      case GPUNN_BF16:
        return bf16(plan, args);
      case GPUNN_F16:
        return f16(plan, args);
      default:
        return f32(plan, args);
    }
  };
}

// Serves `op` in f32 and in half precision, by a plan that knows how many threads the team has.
template <class Plan, class Of>
void add_floating_op(plugin::Device& device, int32_t op, Plan (*plan_of)(const OpDesc&, int threads), Of of,
                     Layouts layouts = Layouts::packed) {
  serve(
      device, op, [plan_of, threads = thread_count()](const OpDesc& desc) { return plan_of(desc, threads); },
      each_floating(of), Dtypes::floating, layouts);
}

// Elements of half precision that are converted at a time: the buffers of three operands stay in the first-level cache.
constexpr int64_t kStretch = 1024;

// n numbers of half precision, `step` apart, as f32.
template <class T>
void widen(const T* x, int64_t step, float* to, int64_t n) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (step == 1) return GPUNN_SELECT_ISA(half_kernels).widen(x, to, n);
  }
  for (int64_t i = 0; i < n; ++i) to[i] = x[i * step];
}

template <class T>
void narrow(const float* x, T* to, int64_t n) {
  if constexpr (std::is_same_v<T, BFloat16>) return GPUNN_SELECT_ISA(half_kernels).narrow(x, to, n);
  for (int64_t i = 0; i < n; ++i) to[i] = T(x[i]);
}

// n numbers in f32: themselves, or a copy at `strip`.
template <class T>
const float* as_wide(const T* x, int64_t n, [[maybe_unused]] float* strip) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    widen(x, 1, strip, n);
    return strip;
  }
}

// Where numbers are made that go to y: there, or at `strip`, from where put_narrow takes them.
template <class T>
float* wide_target(T* y, [[maybe_unused]] float* strip) {
  if constexpr (std::is_same_v<T, float>) {
    return y;
  } else {
    return strip;
  }
}

template <class T>
void put_narrow([[maybe_unused]] const float* strip, [[maybe_unused]] T* y, [[maybe_unused]] int64_t n) {
  if constexpr (!std::is_same_v<T, float>) narrow(strip, y, n);
}

}  // namespace gpunn::cpu
