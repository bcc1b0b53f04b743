// Numbers one by one, their sums, and the matrix product.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "plain.hpp"

namespace plain {
namespace {

// Where element `index` of y finds its operand, whose sizes of 1 are repeated.
int64_t source(const gpunn_tensor& x, const gpunn_tensor& y, int64_t index) {
  int64_t offset = 0, step = 1;
  for (int32_t i = y.rank - 1, k = x.rank - 1; k >= 0; --i, --k) {
    if (x.dim[k] != 1) offset += index % y.dim[i] * step;
    index /= y.dim[i];
    step *= x.dim[k];
  }
  return offset;
}

void expand(const gpunn_expand_attrs&, const OpArgs& args) {
  const gpunn_tensor &x = args.input(0), &y = args.output(0);
  for (int64_t i = 0; i < elements(y); ++i) args.out<float>(0)[i] = args.in<float>(0)[source(x, y, i)];
}

template <float (*function)(float, float)>
void of_two(const gpunn_no_attrs&, const OpArgs& args) {
  const auto *a = args.in<float>(0), *b = args.in<float>(1);
  const gpunn_tensor& y = args.output(0);
  for (int64_t i = 0; i < elements(y); ++i) {
    args.out<float>(0)[i] = function(a[source(args.input(0), y, i)], b[source(args.input(1), y, i)]);
  }
}

template <float (*function)(float)>
void of_one(const gpunn_no_attrs&, const OpArgs& args) {
  for (int64_t i = 0; i < elements(args.output(0)); ++i) args.out<float>(0)[i] = function(args.in<float>(0)[i]);
}

float add(float a, float b) { return a + b; }
float sub(float a, float b) { return a - b; }
float mul(float a, float b) { return a * b; }
float div(float a, float b) { return a / b; }
float maximum(float a, float b) { return std::isnan(a) || a >= b ? a : b; }
float less(float a, float b) { return a < b ? 1.0F : 0.0F; }
float exponential(float x) { return std::exp(x); }
float logarithm(float x) { return std::log(x); }
float root(float x) { return std::sqrt(x); }
float tangent(float x) { return std::tanh(x); }
float error_function(float x) { return std::erf(x); }
float rsqrt(float x) { return 1.0F / std::sqrt(x); }

void select(const gpunn_no_attrs&, const OpArgs& args) {
  const gpunn_tensor& y = args.output(0);
  for (int64_t i = 0; i < elements(y); ++i) {
    const std::size_t chosen = args.in<float>(0)[source(args.input(0), y, i)] != 0.0F ? 1 : 2;
    args.out<float>(0)[i] = args.in<float>(chosen)[source(args.input(chosen), y, i)];
  }
}

template <class To, class From>
To converted(From value) {
  // Of a fraction first the whole part, which then may be cut to a byte.
  if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
    return static_cast<To>(static_cast<int64_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void copy_elements(const OpArgs& args) {
  const gpunn_tensor &x = args.input(0), &y = args.output(0);
  for (int64_t i = 0; i < elements(y); ++i) {
    int64_t rest = i, from = 0, to = 0;
    for (int32_t k = y.rank - 1; k >= 0; --k) {
      from += rest % y.dim[k] * x.stride[k];
      to += rest % y.dim[k] * y.stride[k];
      rest /= y.dim[k];
    }
    args.out<To>(0)[to] = converted<To>(args.in<From>(0)[from]);
  }
}

template <class From>
void copy_from(const OpArgs& args) {
  switch (args.output(0).dtype) {
    case GPUNN_F32:
      return copy_elements<From, float>(args);
    case GPUNN_I32:
      return copy_elements<From, int32_t>(args);
    case GPUNN_I64:
      return copy_elements<From, int64_t>(args);
    default:
      return copy_elements<From, uint8_t>(args);
  }
}

// The one op whose tensors have strides.
void copy(const gpunn_no_attrs&, const OpArgs& args) {
  switch (args.input(0).dtype) {
    case GPUNN_F32:
      return copy_from<float>(args);
    case GPUNN_I32:
      return copy_from<int32_t>(args);
    case GPUNN_I64:
      return copy_from<int64_t>(args);
    default:
      return copy_from<uint8_t>(args);
  }
}

gpunn::plugin::Support is_copy(const OpDesc& desc) {
  const gpunn_tensor& y = desc.output(0);
  for (int32_t i = 0; i < y.rank; ++i) {
    if (y.stride[i] == 0 && y.dim[i] > 1) return gpunn::plugin::Support::no("elements of y overlap");
  }
  return gpunn::plugin::Support::yes();
}

template <class T>
void fill_elements(double value, const OpArgs& args) {
  std::fill_n(args.out<T>(0), elements(args.output(0)), static_cast<T>(value));
}

void fill(const gpunn_fill_attrs& attrs, const OpArgs& args) {
  switch (attrs.dtype) {
    case GPUNN_F32:
      return fill_elements<float>(attrs.value, args);
    case GPUNN_F64:
      return fill_elements<double>(attrs.value, args);
    case GPUNN_I32:
      return fill_elements<int32_t>(attrs.value, args);
    case GPUNN_I64:
      return fill_elements<int64_t>(attrs.value, args);
    default:
      return fill_elements<uint8_t>(attrs.value, args);
  }
}

gpunn::plugin::Support is_fill(const OpDesc& desc) {
  const int32_t dtype = desc.output(0).dtype;
  const bool half = dtype == GPUNN_F16 || dtype == GPUNN_BF16;
  return half ? gpunn::plugin::Support::no("fills no half precision") : gpunn::plugin::Support::yes();
}

// Goes through x once and adds each element to the sum that it belongs to.
void reduce(const gpunn_reduce_attrs& attrs, const OpArgs& args) {
  const gpunn_tensor &x = args.input(0), &y = args.output(0);
  const bool max = attrs.kind == GPUNN_REDUCE_MAX;
  std::vector<double> sums(static_cast<std::size_t>(elements(y)), max ? -std::numeric_limits<double>::infinity() : 0.0);
  for (int64_t i = 0; i < elements(x); ++i) {
    int64_t rest = i, to = 0, step = 1;
    for (int32_t k = x.rank - 1; k >= 0; --k) {
      if ((attrs.axes >> k & 1U) == 0) {
        to += rest % x.dim[k] * step;
        step *= x.dim[k];
      }
      rest /= x.dim[k];
    }
    double& sum = sums[static_cast<std::size_t>(to)];
    const double value = args.in<float>(0)[i];
    sum = !max ? sum + value : std::isnan(value) || value > sum ? value : sum;
  }
  const double terms = static_cast<double>(elements(x)) / static_cast<double>(std::max<int64_t>(1, elements(y)));
  for (int64_t i = 0; i < elements(y); ++i) {
    const double sum = sums[static_cast<std::size_t>(i)];
    args.out<float>(0)[i] = static_cast<float>(attrs.kind == GPUNN_REDUCE_MEAN ? sum / terms : sum);
  }
}

// y[rows,columns] = op(a) op(b), op being the transpose or nothing.
void multiply(const gpunn_matmul_attrs& attrs, const float* a, const float* b, float* y, int64_t rows, int64_t columns,
              int64_t depth) {
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double factor = a[ta ? k * rows + m : m * depth + k];
        sum += factor * b[tb ? n * depth + k : k * columns + n];
      }
      y[m * columns + n] = static_cast<float>(sum);
    }
  }
}

void matmul(const gpunn_matmul_attrs& attrs, const OpArgs& args) {
  const gpunn_tensor &a = args.input(0), &y = args.output(0);
  multiply(attrs, args.in<float>(0), args.in<float>(1), args.out<float>(0), y.dim[0], y.dim[1],
           a.dim[attrs.transpose_a != 0 ? 0 : 1]);
}

void batch_matmul(const gpunn_matmul_attrs& attrs, const OpArgs& args) {
  const gpunn_tensor &a = args.input(0), &y = args.output(0);
  const int64_t rows = y.dim[1], columns = y.dim[2], depth = a.dim[attrs.transpose_a != 0 ? 1 : 2];
  for (int64_t i = 0; i < y.dim[0]; ++i) {
    multiply(attrs, args.in<float>(0) + i * rows * depth, args.in<float>(1) + i * depth * columns,
             args.out<float>(0) + i * rows * columns, rows, columns, depth);
  }
}

}  // namespace

void add_arithmetic(Device& device) {
  serve(device, GPUNN_OP_ADD, of_two<add>);
  serve(device, GPUNN_OP_SUB, of_two<sub>);
  serve(device, GPUNN_OP_MUL, of_two<mul>);
  serve(device, GPUNN_OP_DIV, of_two<div>);
  serve(device, GPUNN_OP_MAXIMUM, of_two<maximum>);
  serve(device, GPUNN_OP_LESS, of_two<less>);
  serve(device, GPUNN_OP_SELECT, select);
  serve(device, GPUNN_OP_EXPAND, expand);
  serve(device, GPUNN_OP_EXP, of_one<exponential>);
  serve(device, GPUNN_OP_LOG, of_one<logarithm>);
  serve(device, GPUNN_OP_SQRT, of_one<root>);
  serve(device, GPUNN_OP_RSQRT, of_one<rsqrt>);
  serve(device, GPUNN_OP_TANH, of_one<tangent>);
  serve(device, GPUNN_OP_ERF, of_one<error_function>);
  serve(device, GPUNN_OP_REDUCE, reduce);
  serve(device, GPUNN_OP_MATMUL, matmul);
  serve(device, GPUNN_OP_BATCH_MATMUL, batch_matmul);
  serve(device, GPUNN_OP_COPY, copy, is_copy);
  serve(device, GPUNN_OP_FILL, fill, is_fill);
}

}  // namespace plain
