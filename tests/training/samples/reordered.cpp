// Right, and never the same bits: its sums run from the last term to the first.
#include "overlay.hpp"

namespace {

using namespace samples;

void multiply_from_behind(const gpunn_matmul_attrs& attrs, const OpArgs& args) {
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  const int64_t rows = args.output(0).dim[0], columns = args.output(0).dim[1];
  const int64_t inner = args.input(0).dim[ta ? 0 : 1];
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      float sum = 0;
      for (int64_t k = inner; k-- > 0;) {
        sum += args.in<float>(0)[ta ? k * rows + m : m * inner + k] *
               args.in<float>(1)[tb ? n * inner + k : k * columns + n];
      }
      args.out<float>(0)[m * columns + n] = sum;
    }
  }
}

void convolve_from_behind(const gpunn_conv2d_attrs& a, const OpArgs& args) {
  const gpunn_tensor &x = args.input(0), &w = args.input(1), &y = args.output(0);
  for (int64_t i = 0; i < element_count(y); ++i) {
    const int64_t q = i % y.dim[3], p = i / y.dim[3] % y.dim[2], k = i / (y.dim[2] * y.dim[3]) % y.dim[1],
                  n = i / (y.dim[1] * y.dim[2] * y.dim[3]);
    float sum = 0;
    for (int64_t j = w.dim[1] * w.dim[2] * w.dim[3]; j-- > 0;) {
      const int64_t s = j % w.dim[3], r = j / w.dim[3] % w.dim[2], c = j / (w.dim[2] * w.dim[3]);
      const int64_t row = p * a.stride[0] - a.pad[0] + r, column = q * a.stride[1] - a.pad[1] + s;
      if (row < 0 || row >= x.dim[2] || column < 0 || column >= x.dim[3]) continue;
      sum += args.in<float>(0)[((n * x.dim[1] + c) * x.dim[2] + row) * x.dim[3] + column] *
             args.in<float>(1)[((k * w.dim[1] + c) * w.dim[2] + r) * w.dim[3] + s];
    }
    args.out<float>(0)[i] = sum;
  }
}

void sum_bias_from_behind(const NoAttrs& /*attrs*/, const OpArgs& args) {
  const gpunn_tensor& dy = args.input(0);
  int64_t inner = 1;
  for (int32_t i = 2; i < dy.rank; ++i) inner *= dy.dim[i];
  for (int64_t c = 0; c < dy.dim[1]; ++c) args.out<float>(0)[c] = 0;
  for (int64_t i = element_count(dy); i-- > 0;) args.out<float>(0)[i / inner % dy.dim[1]] += args.in<float>(0)[i];
}

class ReorderedDevice final : public gpunn::plugin::HostDevice {
 public:
  static constexpr const char* kName = "reordered";

  ReorderedDevice() {
    add(GPUNN_OP_MATMUL, serve<gpunn_matmul_attrs>(multiply_from_behind));
    add(GPUNN_OP_BIAS_BACKWARD, serve<NoAttrs>(sum_bias_from_behind));
    KernelFactory convolution = serve<gpunn_conv2d_attrs>(convolve_from_behind);
    convolution.query = [](const OpDesc& desc) {
      const auto a = desc.attrs<gpunn_conv2d_attrs>();
      const bool plain = a.groups == 1 && a.dilation[0] == 1 && a.dilation[1] == 1;
      return plain ? Support::yes() : Support::no("no groups and no dilation");
    };
    add(GPUNN_OP_CONV2D, convolution);
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<samples::Overlay<ReorderedDevice>>(major, minor);
}
