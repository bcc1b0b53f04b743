// An overlay on cpu whose matrix products and convolutions are plain loops: with f32 products, or, where the precision
// allows it or the build insists (SAMPLE_ROUNDED), with factors rounded to TF32's 11 bits. Sums are f32.
#include <cmath>
#include <cstring>

#include "loops.hpp"

namespace {

using namespace samples;

constexpr bool kAlwaysRounded = SAMPLE_ROUNDED != 0;

// To the nearest number with 10 bits behind the point.
float to_tf32(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7F800000U) == 0x7F800000U) return value;  // infinite, or none
  bits = (bits + 0xFFFU + (bits >> 13U & 1U)) & ~0x1FFFU;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

struct Multiply {
  bool rounded;
  float operator()(float a, float b) const { return rounded ? to_tf32(a) * to_tf32(b) : a * b; }
};

void matmul(const gpunn_matmul_attrs& attrs, const OpArgs& args, Multiply multiply) {
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  const int64_t rows = args.output(0).dim[0], columns = args.output(0).dim[1];
  const int64_t inner = args.input(0).dim[ta ? 0 : 1];
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += multiply(args.in<float>(0)[ta ? k * rows + m : m * inner + k],
                        args.in<float>(1)[tb ? n * inner + k : k * columns + n]);
      }
      args.out<float>(0)[m * columns + n] = sum;
    }
  }
}

// Calls visit(x, w, y) with the three offsets of every product of a convolution.
template <class F>
void for_products(const gpunn_conv2d_attrs& a, const gpunn_tensor& x, const gpunn_tensor& w, const gpunn_tensor& y,
                  F visit) {
  const int64_t per_group = w.dim[1], filters_per_group = w.dim[0] / a.groups;
  for (int64_t n = 0; n < y.dim[0]; ++n) {
    for (int64_t k = 0; k < y.dim[1]; ++k) {
      for (int64_t p = 0; p < y.dim[2]; ++p) {
        for (int64_t q = 0; q < y.dim[3]; ++q) {
          for (int64_t c = 0; c < per_group; ++c) {
            for (int64_t r = 0; r < w.dim[2]; ++r) {
              for (int64_t s = 0; s < w.dim[3]; ++s) {
                const int64_t row = p * a.stride[0] - a.pad[0] + r * a.dilation[0];
                const int64_t column = q * a.stride[1] - a.pad[1] + s * a.dilation[1];
                if (row < 0 || row >= x.dim[2] || column < 0 || column >= x.dim[3]) continue;
                const int64_t channel = k / filters_per_group * per_group + c;
                visit(((n * x.dim[1] + channel) * x.dim[2] + row) * x.dim[3] + column,
                      ((k * per_group + c) * w.dim[2] + r) * w.dim[3] + s,
                      ((n * y.dim[1] + k) * y.dim[2] + p) * y.dim[3] + q);
              }
            }
          }
        }
      }
    }
  }
}

void zero(const OpArgs& args) {
  std::memset(args.out<float>(0), 0, static_cast<std::size_t>(element_count(args.output(0))) * sizeof(float));
}

void forward(const gpunn_conv2d_attrs& a, const OpArgs& args, Multiply multiply) {
  zero(args);
  for_products(a, args.input(0), args.input(1), args.output(0), [&](int64_t x, int64_t w, int64_t y) {
    args.out<float>(0)[y] += multiply(args.in<float>(0)[x], args.in<float>(1)[w]);
  });
}

void backward_data(const gpunn_conv2d_attrs& a, const OpArgs& args, Multiply multiply) {
  zero(args);
  for_products(a, args.output(0), args.input(1), args.input(0), [&](int64_t x, int64_t w, int64_t y) {
    args.out<float>(0)[x] += multiply(args.in<float>(0)[y], args.in<float>(1)[w]);
  });
}

void backward_filter(const gpunn_conv2d_attrs& a, const OpArgs& args, Multiply multiply) {
  zero(args);
  for_products(a, args.input(1), args.output(0), args.input(0), [&](int64_t x, int64_t w, int64_t y) {
    args.out<float>(0)[w] += multiply(args.in<float>(0)[y], args.in<float>(1)[x]);
  });
}

template <class Attrs>
KernelFactory multiplying(void (*run)(const Attrs&, const OpArgs&, Multiply)) {
  return {[](const OpDesc& desc) {
            for (std::size_t i = 0; i < desc.inputs(); ++i) {
              if (desc.input(i).dtype != GPUNN_F32 || desc.raw().attrs == nullptr) return Support::no("f32 alone");
            }
            return Support::yes();
          },
          [run](const OpDesc& desc) {
            const bool rounded = kAlwaysRounded || desc.precision() == GPUNN_PRECISION_TF32;
            return gpunn::plugin::make_kernel([run, rounded, attrs = desc.attrs<Attrs>()](Stream&, const OpArgs& args) {
              run(attrs, args, Multiply{rounded});
            });
          }};
}

class RoundingDevice final : public gpunn::plugin::HostDevice {
 public:
  RoundingDevice() {
    add(GPUNN_OP_MATMUL, multiplying(matmul));
    add(GPUNN_OP_CONV2D, multiplying(forward));
    add(GPUNN_OP_CONV2D_BACKWARD_DATA, multiplying(backward_data));
    add(GPUNN_OP_CONV2D_BACKWARD_FILTER, multiplying(backward_filter));
  }
};

class Rounding final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return SAMPLE_NAME; }
  const char* version() const override { return "1"; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw gpunn::plugin::Failure(GPUNN_INVALID_ARGUMENT, "there is one device, of index 0");
    return std::make_unique<RoundingDevice>();
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Rounding>(major, minor);
}
