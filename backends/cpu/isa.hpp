// Which instruction set the vector kernels run with. One binary serves every machine of an architecture.
//
// How to write a kernel with variants: put it in simd/<family>.cpp. CMake compiles each file of that folder once per
// instruction set, with GPUNN_ISA defined as the variant's name (baseline, avx2, avx512) and -ffp-contract=fast; all
// else in this backend is compiled for the plain machine with -ffp-contract=off.
//
//   simd/relu.hpp   struct ReluKernels { void (*forward)(const float* x, float* y, int64_t n); };
//                   GPUNN_DECLARE_ISA_VARIANTS(ReluKernels, relu_kernels);        // in namespace gpunn::cpu
//   simd/relu.cpp   namespace gpunn::cpu::GPUNN_ISA {                             // all code in this namespace
//                   static void forward(const float* x, float* y, int64_t n) { ... }
//                   const ReluKernels relu_kernels{forward};
//                   }
//   relu.cpp        const ReluKernels& kernels = GPUNN_SELECT_ISA(relu_kernels);  // anew at each kernel's creation
//
// A file of simd/ includes nothing of the standard library but <cstdint> and <cstddef>, and defines everything in
// namespace GPUNN_ISA: an inline function under one name compiled for AVX-512 could otherwise be the copy that the
// linker keeps for the whole binary. simd/lanes/vec.hpp has the vector type of the variant.
#pragma once

#include <string>
#include <vector>

namespace gpunn::cpu {

enum class Isa { baseline, avx2, avx512 };

std::string isa_name(Isa isa);

// What this build has and this machine runs, best last.
std::vector<Isa> usable_isas();

// The best usable one, or that which the environment variable GPUNN_CPU_ISA names. Throws Failure(GPUNN_NO_DEVICE)
// where the variable names none, or one that this machine lacks.
Isa active_isa();

// Overrides active_isa() in this process, for tests. Throws as above where it is not usable.
void set_active_isa(Isa isa);

template <class Table>
const Table& select_isa(const Table& baseline, const Table& avx2, const Table& avx512) {
  switch (active_isa()) {
    case Isa::avx512:
      return avx512;
    case Isa::avx2:
      return avx2;
    case Isa::baseline:
      break;
  }
  return baseline;
}

}  // namespace gpunn::cpu

// Macros, because the names of the x86 variants must not be mentioned where they aren't built.
#if defined(GPUNN_X86_VARIANTS)
#define GPUNN_DECLARE_ISA_VARIANTS(Table, name) \
  namespace baseline {                          \
  extern const Table name;                      \
  }                                             \
  namespace avx2 {                              \
  extern const Table name;                      \
  }                                             \
  namespace avx512 {                            \
  extern const Table name;                      \
  }                                             \
  static_assert(true)
#define GPUNN_SELECT_ISA(name) \
  ::gpunn::cpu::select_isa(::gpunn::cpu::baseline::name, ::gpunn::cpu::avx2::name, ::gpunn::cpu::avx512::name)
#else
#define GPUNN_DECLARE_ISA_VARIANTS(Table, name) \
  namespace baseline {                          \
  extern const Table name;                      \
  }                                             \
  static_assert(true)
#define GPUNN_SELECT_ISA(name) (::gpunn::cpu::baseline::name)
#endif
