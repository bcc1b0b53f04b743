// Tests that need a GPU: where there is none they are skipped, with the reason (exit code 77, which CTest knows).
#include <cstdio>

#include "catch_run.hpp"
#include "gpu.hpp"

int main(int argc, char** argv) {
  for (const gpunn::PluginReport& report : gpu::registry().reports()) {
    if (report.name != "cuda_naive" || report.status == gpunn::PluginStatus::ok) continue;
    std::printf("skipped: %s\n", report.detail.c_str());
    return 77;
  }
  const int failed = run_tests(argc, argv);
  gpunn::shutdown_plugins();
  return failed;
}
