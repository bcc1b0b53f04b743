// Where there is no GPU the tests are skipped, with the reason (exit code 77, which CTest knows).
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include <cuda_runtime_api.h>

int main(int argc, char** argv) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    std::printf("skipped: %s\n", code == cudaSuccess ? "no GPU" : cudaGetErrorString(code));
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
