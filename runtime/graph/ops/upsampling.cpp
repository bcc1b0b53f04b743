// UPSAMPLE2D and its backward.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

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
  return "factor " + ops::pair_text(a.factor) + (a.mode == GPUNN_UPSAMPLE_BILINEAR ? ", bilinear" : ", nearest");
}

}  // namespace

std::vector<OpInfo> upsampling_ops() {
  return {
      {.id = GPUNN_OP_UPSAMPLE2D,
       .gradient = upsample_gradient,
       .flops = upsampling_flops,
       .describe = describe_upsample},
      {.id = GPUNN_OP_UPSAMPLE2D_BACKWARD, .flops = upsampling_backward_flops, .describe = describe_upsample},
  };
}

}  // namespace gpunn::graph
