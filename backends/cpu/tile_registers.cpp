#include "tile_registers.hpp"

#if defined(GPUNN_TILE_REGISTERS)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace gpunn::cpu {

bool may_use_tiles() {
#if defined(GPUNN_TILE_REGISTERS)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  static const bool allowed = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return allowed;
#else
  return false;
#endif
}

}  // namespace gpunn::cpu
