// UPSAMPLE2D and its backward.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

void require_attributes(const gpunn_upsample2d_attrs& a) {
  require(a.factor[0] > 0 && a.factor[1] > 0, "factors " + pair_text(a.factor) + " must be positive");
  require(a.mode == GPUNN_UPSAMPLE_NEAREST || a.mode == GPUNN_UPSAMPLE_BILINEAR,
          "there is no mode " + std::to_string(a.mode));
}

Types infer_upsample(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 4, "x");
  const auto a = attrs.as<gpunn_upsample2d_attrs>();
  require_attributes(a);
  Shape y = in[0].shape;
  for (std::size_t i = 0; i < 2; ++i) {
    require(y[2 + i] > 0, "x " + to_string(in[0]) + " must not have empty images");
    require(!__builtin_mul_overflow(y[2 + i], int64_t{a.factor[i]}, &y[2 + i]),
            "factors " + pair_text(a.factor) + " make " + to_string(in[0]) + " larger than any memory");
  }
  return {{DType::f32, y}};
}

Types infer_upsample_backward(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 4, "dy");
  const auto a = attrs.as<gpunn_upsample2d_attrs>();
  require_attributes(a);
  Shape x = in[0].shape;
  for (std::size_t i = 0; i < 2; ++i) {
    require(x[2 + i] > 0 && x[2 + i] % a.factor[i] == 0,
            "rows and columns of dy " + to_string(in[0]) + " must be multiples of the factors " + pair_text(a.factor));
    x[2 + i] /= a.factor[i];
  }
  return {{DType::f32, x}};
}

void upsample_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_UPSAMPLE2D_BACKWARD, c.node().attrs, {c.output_gradient()}));
}

// Of the larger tensor: nothing is computed, or three times a mean of two.
double flops(const Attributes& attrs, const TensorType& large) {
  constexpr double kBilinear = 9;
  const bool bilinear = attrs.as<gpunn_upsample2d_attrs>().mode == GPUNN_UPSAMPLE_BILINEAR;
  return bilinear ? kBilinear * static_cast<double>(large.elements()) : 0;
}

double upsampling_flops(const OpSignature& s) { return flops(s.attrs, s.outputs[0]); }
double upsampling_backward_flops(const OpSignature& s) {
  return flops(s.attrs, s.inputs[0]) + static_cast<double>(s.inputs[0].elements());
}

std::string describe_upsample(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_upsample2d_attrs>();
  return "factor " + pair_text(a.factor) + (a.mode == GPUNN_UPSAMPLE_BILINEAR ? ", bilinear" : ", nearest");
}

}  // namespace

std::vector<OpInfo> upsampling_ops() {
  return {
      {.id = GPUNN_OP_UPSAMPLE2D,
       .name = "UPSAMPLE2D",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_upsample,
       .gradient = upsample_gradient,
       .flops = upsampling_flops,
       .describe = describe_upsample},
      {.id = GPUNN_OP_UPSAMPLE2D_BACKWARD,
       .name = "UPSAMPLE2D_BACKWARD",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_upsample_backward,
       .flops = upsampling_backward_flops,
       .describe = describe_upsample},
  };
}

}  // namespace gpunn::graph
