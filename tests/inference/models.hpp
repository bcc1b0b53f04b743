// Trained models for the tests of the room, and arrays of samples for them.
#pragma once

#include <gpunn/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "training/fixtures.hpp"

namespace gpunn::testing {

// Samples of a model: its input as Model::run takes it.
struct Samples {
  explicit Samples(const Model& model, int64_t rows) : input(model.inputs().front()) {
    shape = input.row.shape;
    shape.insert(shape.begin(), rows);
    bytes.resize(static_cast<std::size_t>(rows) * input.row.bytes());
  }
  ArrayView view() const {
    return {.name = input.name, .dtype = input.row.dtype, .shape = shape, .data = bytes.data()};
  }
  // Other images for each row and seed.
  Samples& draw(uint32_t seed) {
    for (std::byte& value : bytes) {
      seed = seed * 1664525U + 1013904223U;
      value = static_cast<std::byte>(seed >> 24U);
    }
    return *this;
  }

  ModelTensor input;
  Shape shape;
  std::vector<std::byte> bytes;
};

// An output of a model for so many rows.
struct Answers {
  Answers(const Model& model, std::size_t output, int64_t rows) : tensor(model.outputs().at(output)) {
    shape = tensor.row.shape;
    shape.insert(shape.begin(), rows);
    values.resize(static_cast<std::size_t>(element_count(shape)), -1.0F);
  }
  MutableArrayView view() { return {.name = tensor.name, .dtype = DType::f32, .shape = shape, .data = values.data()}; }

  ModelTensor tensor;
  Shape shape;
  std::vector<float> values;
};

inline std::vector<float> logits_of(const Model& model, const Samples& samples) {
  Answers answers(model, 0, samples.shape.front());
  model.run(samples.view(), answers.view());
  return answers.values;
}

// Normally distributed numbers, for a model that takes f32.
inline Samples drawn(const Model& model, int64_t rows) {
  Samples samples(model, rows);
  std::mt19937 random(11);
  std::normal_distribution<float> draw;
  auto* const values = reinterpret_cast<float*>(samples.bytes.data());
  std::generate_n(values, samples.bytes.size() / sizeof(float), [&] { return draw(random); });
  return samples;
}

inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

// An ESPCN after a few steps.
inline RunResult trained_espcn(const std::filesystem::path& runs, const std::string& colours,
                               const std::string& input = "small") {
  const std::string model = input == "small" ? "espcn.yaml, parameters: {scale: 2, " : "srcnn.yaml, parameters: {";
  return train(parse_experiment(
      "name: espcn\ntask: super_resolution\nmodel: {file: " +
          (std::filesystem::path(GPUNN_SOURCE_DIR) / "models").string() + "/" + model +
          "channels: " + (colours == "rgb" ? "3" : "1") +
          "}}\ndata: {dataset: drawn_photographs, scale: 2, patch_size: 24, patches: 320, batch_size: 16, colours: " +
          colours + ", input: " + input +
          ", synthetic_train: 4, synthetic_test: 1}\noptimizer: {type: adam, learning_rate: 0.002}\n"
          "training: {epochs: 1}\nbackend: cpu\nruns: " +
          runs.string() + "\n",
      "espcn.yaml"));
}

}  // namespace gpunn::testing
