#include "int8/int8_products.hpp"

#include "isa.hpp"

#if defined(GPUNN_INT8_PRODUCTS)
#include <cpuid.h>
#endif

namespace gpunn::cpu {

#if defined(GPUNN_INT8_PRODUCTS)

void multiply_vnni512(const Int8Tile& tile);
void multiply_vnni(const Int8Tile& tile);

namespace {

struct Int8Features {
  bool avx512_vnni = false;
  bool avx_vnni = false;
};

Int8Features int8_features() {
  constexpr unsigned kAvx512Vnni = 1U << 11;  // of leaf 7, subleaf 0, ecx
  constexpr unsigned kAvxVnni = 1U << 4;      // of leaf 7, subleaf 1, eax
  unsigned a = 0, b = 0, c = 0, d = 0;
  Int8Features found;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) found.avx512_vnni = (c & kAvx512Vnni) != 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) found.avx_vnni = (a & kAvxVnni) != 0;
  return found;
}

}  // namespace

#endif

const Int8Products& int8_products() {
  static const Int8Products portable[] = {{"portable", 1, GPUNN_SELECT_ISA(int8_kernels).multiply}};
#if defined(GPUNN_INT8_PRODUCTS)
  constexpr int kPair = 4;
  static const Int8Features found = int8_features();
  static const Int8Products vnni512{"vnni512", kPair, multiply_vnni512}, vnni{"vnni", kPair, multiply_vnni};
  if (active_isa() == Isa::avx512 && found.avx512_vnni) return vnni512;
  if (active_isa() != Isa::baseline && found.avx_vnni) return vnni;
#endif
  return portable[0];
}

}  // namespace gpunn::cpu
