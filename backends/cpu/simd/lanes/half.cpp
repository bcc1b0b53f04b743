#include "simd/lanes/half.hpp"

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

template <class From, class To>
static void convert_run(const From* x, To* y, int64_t n) {
  each_vector(n, [&](int64_t i, auto load_at, auto store_at) { store_at(y + i, load_at(x + i)); });
}

constinit const HalfKernels half_kernels{convert_run<BFloat16, float>, convert_run<float, BFloat16>};

}  // namespace gpunn::cpu::GPUNN_ISA
