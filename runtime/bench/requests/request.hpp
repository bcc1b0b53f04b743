#pragma once

#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/op_request.hpp"
#include "graph/graph.hpp"
#include "graph/op_info.hpp"

// How the ops of each family are asked for on the command line.
namespace gpunn::bench {

// A shape as it was written, taken apart: "128,64,32,32,64,3,3,pad=1".
struct Written {
  std::string op;
  std::string text;
  std::vector<int64_t> sizes;
  std::map<std::string, int64_t> options;  // those not yet taken
};

[[noreturn]] void bad(const Written& written, const std::string& expected);
// The option's value, which is then no longer there.
int64_t take(Written& written, const std::string& option, int64_t otherwise);

inline TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }
inline TensorType i32(Shape shape) { return {DType::i32, std::move(shape)}; }
inline TensorType step_type() { return {DType::i64, {}}; }
inline TensorType count_type() { return {DType::i32, {}}; }

inline Content uniform(double low, double high) { return {Content::Kind::uniform, low, high}; }
inline Content constant(double value) { return {Content::Kind::constant, value, value}; }
inline Content below(int64_t n) { return {Content::Kind::whole, 0, static_cast<double>(n)}; }

// The request without the outputs' types, which follow from the rest.
using Builder = OpRequest (*)(Written&, const graph::OpInfo&);
using Builders = std::map<int32_t, Builder>;

void add_elementwise(Builders& builders);
void add_linear(Builders& builders);
void add_convolution(Builders& builders);
void add_pooling(Builders& builders);
void add_shape(Builders& builders);
void add_normalization(Builders& builders);
void add_loss(Builders& builders);
void add_reduction(Builders& builders);
void add_optimizer(Builders& builders);
void add_random(Builders& builders);
void add_batch(Builders& builders);

}  // namespace gpunn::bench
