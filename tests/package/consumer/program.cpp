// Prints the status of each plugin file that it is given, through libgpunn's public headers.
#include <gpunn/bench.hpp>
#include <gpunn/check.hpp>
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/plan.hpp>
#include <gpunn/plugins.hpp>
#include <gpunn/tensor_type.hpp>
#include <gpunn/training.hpp>
#include <gpunn/version.hpp>

#include <iostream>

int main(int argc, char** argv) {
  for (const auto& report : gpunn::list_plugins({argv + 1, argv + argc})) {
    std::cout << report.name << ' ' << gpunn::name_of(report.status) << ' ' << report.detail << '\n';
  }
}
