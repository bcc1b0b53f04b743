// Where there is no GPU the tests are skipped, with the reason (exit code 77, which CTest knows).
#include <cstdio>

#include <cuda_runtime_api.h>

#include "catch_run.hpp"

int main(int argc, char** argv) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    std::printf("skipped: %s\n", code == cudaSuccess ? "no GPU" : cudaGetErrorString(code));
    return 77;
  }
  return run_tests(argc, argv);
}
