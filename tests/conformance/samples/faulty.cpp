// An overlay on cpu in which each kernel has a different mistake. check_test.cpp lists those that must be found.
#include <cmath>

#include "loops.hpp"

namespace {

using namespace samples;

class FaultyDevice final : public gpunn::plugin::HostDevice {
 public:
  FaultyDevice() {
    // Forgets the last term of each sum.
    add(GPUNN_OP_MATMUL, serve<gpunn_matmul_attrs>(
                             [](const gpunn_matmul_attrs& attrs, const OpArgs& args) { multiply(attrs, args, 1); }));
    // Writes one element behind the end.
    add(GPUNN_OP_RELU, serve<NoAttrs>([](const NoAttrs&, const OpArgs& args) {
          const int64_t n = element_count(args.output(0));
          for (int64_t i = 0; i < n; ++i) {
            const float x = args.in<float>(0)[i];
            args.out<float>(0)[i] = x < 0 ? 0 : x;
          }
          args.out<float>(0)[n] = 0;
        }));
    // Leaves the last element as it was.
    add(GPUNN_OP_ADD, serve<NoAttrs>([](const NoAttrs&, const OpArgs& args) {
          for (int64_t i = 0; i + 1 < element_count(args.output(0)); ++i) {
            args.out<float>(0)[i] = args.in<float>(0)[i] + args.in<float>(1)[i];
          }
        }));
    // Says that it is deterministic, but is off by one bit every second time.
    add(GPUNN_OP_MEAN_ROWS, {[](const OpDesc&) { return Support::yes(); },
                             [](const OpDesc&) {
                               return gpunn::plugin::make_kernel([odd = false](Stream&, const OpArgs& args) mutable {
                                 double sum = 0;
                                 const int32_t count = *args.in<int32_t>(1);
                                 for (int32_t i = 0; i < count; ++i) sum += args.in<float>(0)[i];
                                 const auto mean = static_cast<float>(count == 0 ? 0 : sum / count);
                                 *args.out<float>(0) = odd && mean != 0 ? std::nextafter(mean, 2.0F) : mean;
                                 odd = !odd;
                               });
                             }});
    // Changes what it reads.
    add(GPUNN_OP_SCALE, serve<gpunn_scale_attrs>([](const gpunn_scale_attrs& attrs, const OpArgs& args) {
          for (int64_t i = 0; i < element_count(args.output(0)); ++i) {
            const float y = attrs.factor * args.in<float>(0)[i];
            static_cast<float*>(args.input(0).data)[i] = 0;
            args.out<float>(0)[i] = y;
          }
        }));
    // Is right unless y is x.
    add(GPUNN_OP_BIAS_ADD, serve<NoAttrs>([](const NoAttrs&, const OpArgs& args) {
          const gpunn_tensor& x = args.input(0);
          int64_t inner = 1;
          for (int32_t i = 2; i < x.rank; ++i) inner *= x.dim[i];
          for (int64_t i = 0; i < element_count(x); ++i) {
            args.out<float>(0)[i] = args.in<float>(1)[i / inner % x.dim[1]];
          }
          for (int64_t i = 0; i < element_count(x); ++i) args.out<float>(0)[i] += args.in<float>(0)[i];
        }));
    // Takes the gradient where y is 0 too.
    add(GPUNN_OP_RELU_BACKWARD, serve<NoAttrs>([](const NoAttrs&, const OpArgs& args) {
          for (int64_t i = 0; i < element_count(args.output(0)); ++i) {
            args.out<float>(0)[i] = args.in<float>(1)[i] >= 0 ? args.in<float>(0)[i] : 0;
          }
        }));
    // Uses a byte more workspace than it asked for.
    add(GPUNN_OP_NLL_LOSS_BACKWARD, {[](const OpDesc&) { return Support::yes(8); },
                                     [](const OpDesc&) {
                                       return gpunn::plugin::make_kernel([](Stream&, const OpArgs& args) {
                                         const int64_t rows = args.output(0).dim[0], classes = args.output(0).dim[1];
                                         args.workspace<char>()[8] = 1;
                                         for (int64_t i = 0; i < rows * classes; ++i) {
                                           const bool label = args.in<int32_t>(1)[i / classes] == i % classes;
                                           args.out<float>(0)[i] = label ? -args.in<float>(0)[i / classes] : 0;
                                         }
                                       });
                                     }});
    // Believes that its workspace is zero.
    add(GPUNN_OP_TABLE_LOAD, {[](const OpDesc&) { return Support::yes(4); },
                              [](const OpDesc&) {
                                return gpunn::plugin::make_kernel([](Stream&, const OpArgs& args) {
                                  const int64_t last = args.input(0).dim[0] - 1;
                                  const int64_t step = std::min(*args.in<int64_t>(1), last);
                                  *args.out<float>(0) = args.in<float>(0)[step] + *args.workspace<float>();
                                });
                              }});
    // Reads beyond its input.
    add(GPUNN_OP_MSE_LOSS, serve<NoAttrs>([](const NoAttrs&, const OpArgs& args) {
          const gpunn_tensor& x = args.input(0);
          if (x.dim[0] == 0) return;
          const int64_t rows = x.dim[0], size = element_count(x) / rows;
          for (int64_t n = 0; n < rows; ++n) {
            double sum = 0;
            for (int64_t i = 0; i <= size; ++i) {
              const double difference = args.in<float>(0)[n * size + i] - args.in<float>(1)[n * size + i];
              sum += i < size ? difference * difference : difference * 0;
            }
            args.out<float>(0)[n] = static_cast<float>(sum / static_cast<double>(size));
          }
        }));
    add(GPUNN_OP_ADVANCE, {[](const OpDesc&) { return Support::yes(); },
                           [](const OpDesc&) {
                             return gpunn::plugin::make_kernel(
                                 [](Stream&, const OpArgs&) { throw std::runtime_error("no mood to count today"); });
                           }});
  }
};

class Faulty final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return "faulty"; }
  const char* version() const override { return "1"; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw gpunn::plugin::Failure(GPUNN_INVALID_ARGUMENT, "there is one device");
    return std::make_unique<FaultyDevice>();
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Faulty>(major, minor);
}
