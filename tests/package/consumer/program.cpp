// Prints the status of each plugin file that it is given, through libgpunn's public headers: all of them are here.
#include <gpunn/augmentation.hpp>
#include <gpunn/bench.hpp>
#include <gpunn/check.hpp>
#include <gpunn/clock.hpp>
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>
#include <gpunn/evaluation.hpp>
#include <gpunn/evaluation_part.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/export.h>
#include <gpunn/gpunn.h>
#include <gpunn/metric.hpp>
#include <gpunn/model.hpp>
#include <gpunn/model_info.hpp>
#include <gpunn/plan.hpp>
#include <gpunn/plugins.hpp>
#include <gpunn/profile.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/race.hpp>
#include <gpunn/report.hpp>
#include <gpunn/summary.hpp>
#include <gpunn/tensor_type.hpp>
#include <gpunn/training.hpp>
#include <gpunn/version.hpp>
#include <gpunn/vocabulary.hpp>
#include <gpunn/words.hpp>

#include <iostream>

int main(int argc, char** argv) {
  for (const auto& report : gpunn::list_plugins({argv + 1, argv + argc})) {
    std::cout << report.name << ' ' << gpunn::name_of(report.status) << ' ' << report.detail << '\n';
  }
}
