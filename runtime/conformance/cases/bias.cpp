#include <gpunn/ops.h>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

// Rows of a linear layer, planes of images; one channel, one element, one image; odd sizes; many terms a sum.
const std::vector<Shape> kBiasShapes = {{1, 1},         {1, 17},      {129, 1},       {128, 10},       {37, 123},
                                        {1031, 7},      {1, 1, 1, 1}, {2, 3, 5, 7},   {16, 6, 28, 28}, {3, 33, 1, 1},
                                        {1, 5, 64, 65}, {4, 7, 11},   {5, 300, 2, 3}, {0, 4}};

graph::Attributes activation(int32_t kind) {
  return graph::Attributes::of(gpunn_bias_activation_backward_attrs{.struct_size = 0, .activation = kind});
}

}  // namespace

std::vector<Case> bias_cases() {
  std::vector<Case> cases;
  for (const Shape& shape : kBiasShapes) {
    cases.push_back(make_case({.op = GPUNN_OP_BIAS_ADD, .inputs = {f32(shape), f32({shape[1]})}}));
    cases.push_back(make_case({.op = GPUNN_OP_BIAS_BACKWARD, .inputs = {f32(shape)}}));
    const InputSpec y = f32(shape, sometimes(0, 2, uniform(0, 1)));
    for (const int32_t kind : {GPUNN_ACTIVATION_NONE, GPUNN_ACTIVATION_RELU}) {
      cases.push_back(
          make_case({.op = GPUNN_OP_BIAS_ACTIVATION_BACKWARD, .attrs = activation(kind), .inputs = {f32(shape), y}}));
    }
  }
  return cases;
}

}  // namespace gpunn::conformance
