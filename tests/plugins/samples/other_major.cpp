// A plugin of the next major version.
extern "C" __attribute__((visibility("default"))) const void* gpunn_plugin_query_v2(unsigned short, unsigned short) {
  return nullptr;
}
