// The library that a plugin is linked with and that the loader won't find.
extern "C" __attribute__((visibility("default"))) int gpunn_test_absent() { return 42; }
