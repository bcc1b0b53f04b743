// Models in YAML, up to the shapes of their parameters.
#include <gpunn/experiment.hpp>

#include "fuzz.hpp"
#include "nn/model.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const gpunn::fuzz::MemoryFile file(gpunn::fuzz::text_of(data, bytes));
  gpunn::fuzz::expect_at_most_an_error([&] {
    const gpunn::Experiment experiment =
        gpunn::parse_experiment("model: " + file.path().string() + "\ndata: digits\n", "fuzz.yaml");
    gpunn::nn::model_parameters(experiment.model, {3, 32, 32});
    gpunn::nn::model_buffers(experiment.model, {3, 32, 32});
  });
  return 0;
}
