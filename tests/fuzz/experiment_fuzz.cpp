// Experiments in YAML.
#include <gpunn/experiment.hpp>

#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  gpunn::fuzz::expect_at_most_an_error([&] {
    const gpunn::Experiment experiment =
        gpunn::parse_experiment(std::string(gpunn::fuzz::text_of(data, bytes)), "fuzz.yaml");
    gpunn::resolved_yaml(experiment);
  });
  return 0;
}
