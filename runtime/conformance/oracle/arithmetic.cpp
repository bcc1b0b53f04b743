// Arithmetic with broadcasting, and functions of one number.
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// The element of input i that element `index` of the output is made of.
std::size_t source(const OracleCall& call, std::size_t i, int64_t index) {
  const Shape &x = call.in_type(i).shape, &y = call.out_type().shape;
  int64_t offset = 0, stride = 1;
  for (std::size_t k = 0; k < y.size(); ++k) {  // from the last dimension on
    const int64_t size = y[y.size() - 1 - k], position = index % size;
    index /= size;
    if (k >= x.size()) continue;
    const int64_t own = x[x.size() - 1 - k];
    offset += (own == 1 ? 0 : position) * stride;
    stride *= own;
  }
  return at(offset);
}

template <double (*f)(double, double)>
void of_two(OracleCall& call) {
  for (int64_t i = 0; i < call.out_type().elements(); ++i) {
    call.out()[at(i)] = f(call.in(0)[source(call, 0, i)], call.in(1)[source(call, 1, i)]);
  }
}

template <double (*f)(double)>
void of_one(OracleCall& call) {
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = f(call.in(0)[i]);
}

double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
double larger(double a, double b) { return std::isnan(a) || a >= b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a <= b ? a : b; }
double power(double a, double b) { return std::pow(a, b); }
double equal(double a, double b) { return a == b ? 1 : 0; }
double less(double a, double b) { return a < b ? 1 : 0; }
double less_equal(double a, double b) { return a <= b ? 1 : 0; }
double exponential(double x) { return std::exp(x); }
double logarithm(double x) { return std::log(x); }
double root(double x) { return std::sqrt(x); }
double inverse_root(double x) { return 1 / std::sqrt(x); }
double error_function(double x) { return std::erf(x); }

void select(OracleCall& call) {
  for (int64_t i = 0; i < call.out_type().elements(); ++i) {
    const std::size_t chosen = call.in(0)[source(call, 0, i)] != 0 ? 1 : 2;
    call.out()[at(i)] = call.in(chosen)[source(call, chosen, i)];
  }
}

void expand(OracleCall& call) {
  for (int64_t i = 0; i < call.out_type().elements(); ++i) call.out()[at(i)] = call.in(0)[source(call, 0, i)];
}

}  // namespace

std::vector<OracleEntry> arithmetic_oracle() {
  return {
      {GPUNN_OP_ADD, of_two<sum>},
      {GPUNN_OP_SUB, of_two<difference>},
      {GPUNN_OP_MUL, of_two<product>},
      {GPUNN_OP_DIV, of_two<quotient>},
      {GPUNN_OP_MAXIMUM, of_two<larger>},
      {GPUNN_OP_MINIMUM, of_two<smaller>},
      {GPUNN_OP_POW, of_two<power>},
      {GPUNN_OP_EQUAL, of_two<equal>},
      {GPUNN_OP_LESS, of_two<less>},
      {GPUNN_OP_LESS_EQUAL, of_two<less_equal>},
      {GPUNN_OP_SELECT, select},
      {GPUNN_OP_EXPAND, expand},
      {GPUNN_OP_EXP, of_one<exponential>},
      {GPUNN_OP_LOG, of_one<logarithm>},
      {GPUNN_OP_SQRT, of_one<root>},
      {GPUNN_OP_RSQRT, of_one<inverse_root>},
      {GPUNN_OP_ERF, of_one<error_function>},
  };
}

}  // namespace gpunn::conformance
