// Tests that need a GPU: where there is none they are skipped, with the reason (exit code 77, which CTest knows).
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include "gpu.hpp"

int main(int argc, char** argv) {
  for (const gpunn::PluginReport& report : gpu::registry().reports()) {
    if (report.name != "cuda_naive" || report.status == gpunn::PluginStatus::ok) continue;
    std::printf("skipped: %s\n", report.detail.c_str());
    return 77;
  }
  const int failed = Catch::Session().run(argc, argv);
  gpunn::shutdown_plugins();
  return failed;
}
