#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

double convert(double value, DType to) {
  switch (to) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::f64:
      return value;
    case DType::i64:
      return static_cast<double>(static_cast<int64_t>(value));
    case DType::i32:
      return static_cast<int32_t>(static_cast<int64_t>(value));
    case DType::u8:
      return static_cast<uint8_t>(static_cast<int64_t>(value));
    case DType::bf16:
    case DType::f16:
      break;
  }
  throw Error("the oracle does not convert to " + std::string(name_of(to)));
}

namespace {

void scale(OracleCall& call) {
  const double factor = call.attrs<gpunn_scale_attrs>().factor;
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = factor * call.in(0)[i];
}

void axpby(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_axpby_attrs>();
  const double alpha = attrs.alpha, beta = attrs.beta;
  call.require(call.in(0).size() == call.in(1).size() && call.in(0).size() == call.out().size(), "three equal sizes");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = alpha * call.in(0)[i] + beta * call.in(1)[i];
}

void clamp(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_clamp_attrs>();
  const double low = attrs.low, high = attrs.high;
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    const double x = call.in(0)[i];
    call.out()[i] = std::isnan(x) ? x : std::min(std::max(x, low), high);
  }
}

void copy(OracleCall& call) {
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  const DType from = call.in_type(0).dtype, to = call.out_type().dtype;
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    call.out()[i] = from == to ? call.in(0)[i] : convert(call.in(0)[i], to);
  }
}

void fill(OracleCall& call) {
  const double value = convert(call.attrs<gpunn_fill_attrs>().value, call.out_type().dtype);
  for (double& y : call.out()) y = value;
}

}  // namespace

std::vector<OracleEntry> elementwise_oracle() {
  return {{GPUNN_OP_SCALE, scale},
          {GPUNN_OP_AXPBY, axpby},
          {GPUNN_OP_CLAMP, clamp},
          {GPUNN_OP_COPY, copy},
          {GPUNN_OP_FILL, fill}};
}

}  // namespace gpunn::conformance
