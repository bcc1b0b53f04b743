// A plugin that would be fine, if what it is linked with were there.
#include <gpunn/abi.h>

extern "C" int gpunn_test_absent();

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t, uint16_t) {
  static const gpunn_plugin table{};
  return gpunn_test_absent() == 42 ? &table : nullptr;
}
