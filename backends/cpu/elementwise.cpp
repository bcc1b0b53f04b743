// ADD, SCALE, FILL, RELU and RELU_BACKWARD. COPY, which takes strides, is in copy.cpp.
#include "simd/elementwise.hpp"

#include <gpunn/plugin.hpp>

#include <cmath>
#include <limits>

#include "copy.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "requirements.hpp"

namespace gpunn::cpu {
namespace {

// y = f(x, ...) over n elements, all f32, packed and of one shape.
struct MapPlan {
  int64_t n = 0;
  const ElementwiseKernels* kernels = nullptr;
  float factor = 0.0F;
};

MapPlan plan_map(const OpDesc& desc, std::size_t inputs) {
  require_tensors(desc, inputs, inputs, 1);
  require_packed(desc.output(0), GPUNN_F32, "the output");
  for (std::size_t i = 0; i < inputs; ++i) {
    require_packed(desc.input(i), GPUNN_F32, "an input");
    require_same_shape(desc.input(i), desc.output(0), "inputs and output");
  }
  return {.n = plugin::element_count(desc.output(0)), .kernels = &GPUNN_SELECT_ISA(elementwise_kernels)};
}

MapPlan plan_unary(const OpDesc& desc) { return plan_map(desc, 1); }
MapPlan plan_binary(const OpDesc& desc) { return plan_map(desc, 2); }

MapPlan plan_scale(const OpDesc& desc) {
  MapPlan plan = plan_unary(desc);
  plan.factor = require_attrs<gpunn_scale_attrs>(desc).factor;
  return plan;
}

void run_add(const MapPlan& plan, const OpArgs& args) {
  const auto *a = args.in<float>(0), *b = args.in<float>(1);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain,
                  [&](int64_t begin, int64_t end) { plan.kernels->add(a + begin, b + begin, y + begin, end - begin); });
}

void run_scale(const MapPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    plan.kernels->scale(x + begin, plan.factor, y + begin, end - begin);
  });
}

void run_relu(const MapPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain,
                  [&](int64_t begin, int64_t end) { plan.kernels->relu(x + begin, y + begin, end - begin); });
}

void run_relu_backward(const MapPlan& plan, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *y = args.in<float>(1);
  auto* dx = args.out<float>(0);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    plan.kernels->relu_backward(dy + begin, y + begin, dx + begin, end - begin);
  });
}

struct FillPlan {
  int64_t n = 0;
  int32_t dtype = 0;
  double value = 0.0;
};

template <class T>
bool holds(double value) {
  // The upper bound of int64 is not a double; the next double above is, and is out.
  return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
         value < std::ldexp(1.0, std::numeric_limits<T>::digits) && value == std::trunc(value);
}

FillPlan plan_fill(const OpDesc& desc) {
  require_tensors(desc, 0, 0, 1);
  const auto attrs = require_attrs<gpunn_fill_attrs>(desc);
  const gpunn_tensor& y = desc.output(0);
  require_packed(y, attrs.dtype, "y");
  gpunn_tensor wanted = y;
  require(attrs.rank == y.rank, "y must have the rank that the attributes name");
  std::copy(attrs.dim, attrs.dim + attrs.rank, wanted.dim);
  require_same_shape(y, wanted, "y and the attributes");
  switch (y.dtype) {
    case GPUNN_F32:
    case GPUNN_F64:
      break;
    case GPUNN_I32:
      require(holds<int32_t>(attrs.value), "the value does not fit i32");
      break;
    case GPUNN_I64:
      require(holds<int64_t>(attrs.value), "the value does not fit i64");
      break;
    case GPUNN_U8:
      require(holds<uint8_t>(attrs.value), "the value does not fit u8");
      break;
    default:
      throw Refusal(std::string("does not fill ") + dtype_name(y.dtype));
  }
  return {.n = plugin::element_count(y), .dtype = y.dtype, .value = attrs.value};
}

template <class T>
void fill(const FillPlan& plan, const OpArgs& args) {
  auto* y = args.out<T>(0);
  const T value = static_cast<T>(plan.value);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
}

void run_fill(const FillPlan& plan, const OpArgs& args) {
  switch (plan.dtype) {
    case GPUNN_F32:
      return fill<float>(plan, args);
    case GPUNN_F64:
      return fill<double>(plan, args);
    case GPUNN_I32:
      return fill<int32_t>(plan, args);
    case GPUNN_I64:
      return fill<int64_t>(plan, args);
    default:
      return fill<uint8_t>(plan, args);
  }
}

}  // namespace

void add_elementwise_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADD, plan_binary, run_add);
  add_op(device, GPUNN_OP_SCALE, plan_scale, run_scale);
  add_op(device, GPUNN_OP_FILL, plan_fill, run_fill);
  add_op(device, GPUNN_OP_RELU, plan_unary, run_relu);
  add_op(device, GPUNN_OP_RELU_BACKWARD, plan_binary, run_relu_backward);
  add_op(device, GPUNN_OP_COPY, plan_copy, run_copy);
}

}  // namespace gpunn::cpu
