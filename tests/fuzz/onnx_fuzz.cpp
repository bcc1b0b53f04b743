// ONNX files: reading them, turning their nodes into layers, and the model of these layers.
#include "config/layer_table.hpp"
#include "fuzz.hpp"
#include "interchange/onnx/import.hpp"
#include "nn/model.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const gpunn::fuzz::MemoryFile file(gpunn::fuzz::text_of(data, bytes));
  gpunn::fuzz::expect_at_most_an_error([&] {
    constexpr int64_t kFew = 1 << 16;  // a constant that is computed takes a moment, and nothing else is in it
    const auto imported = gpunn::interchange::import_onnx(file.path(), {.computed = kFew});
    gpunn::config::Diagnostics diagnostics;
    for (const gpunn::LayerSpec& layer : imported.model.layers) gpunn::config::check_layer(layer, diagnostics);
    diagnostics.throw_if_any();
    gpunn::nn::SampleTypes samples;
    for (const auto& [name, sample] : imported.inputs) samples.push_back({name, sample});
    gpunn::nn::output_shape(imported.model, samples);
  });
  return 0;
}
