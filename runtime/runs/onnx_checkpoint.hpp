#pragma once

#include <gpunn/model_info.hpp>

#include <filesystem>
#include <optional>
#include <vector>

#include "runs/trained_model.hpp"

namespace gpunn::training {

// An ONNX file as a trained model, in the form of a checkpoint. Throws Error: what import_onnx() throws, and usage if
// the file's metadata contradict its graph. The override model.input_shape has the sizes that the file leaves open, or
// `image_size` has the rows and columns of its images; by default they are those that its metadata name.
TrainedFile read_onnx_checkpoint(const std::filesystem::path& file, std::vector<Override> overrides,
                                 const std::vector<int64_t>& image_size = {});

// Its tensors, named as those of the model's layers.
std::vector<storage::StoredTensor> onnx_tensors(const std::filesystem::path& file,
                                                const std::vector<int64_t>& input_shape);

// How its samples are prepared: what the metadata say of them. Empty if they say nothing, or if nodes of the graph
// prepare the samples.
std::optional<ModelInfo> onnx_preparation(const std::filesystem::path& file, const std::vector<int64_t>& input_shape);

}  // namespace gpunn::training
