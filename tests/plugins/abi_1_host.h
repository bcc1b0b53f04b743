/* A host of the first release of the contract, for abi_1_test.cpp. */
#ifndef GPUNN_TESTS_ABI_1_HOST_H
#define GPUNN_TESTS_ABI_1_HOST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a plugin of the host's memory and computes with it. What went wrong; NULL: nothing. */
const char* gpunn_abi_1_host(const char* file);

#ifdef __cplusplus
}
#endif

#endif
