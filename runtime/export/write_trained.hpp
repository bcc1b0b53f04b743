#pragma once

#include <gpunn/onnx_export.hpp>

#include <filesystem>
#include <vector>

#include "inference/eight_bits/quantizers.hpp"
#include "runs/trained_model.hpp"

namespace gpunn::interchange {

// export_onnx() of what was read. With quantizers, tensors_to_quantize() of the model are in eight bits, and batch
// norms are folded.
OnnxExportReport write_trained(const training::TrainedFile& trained, const std::filesystem::path& file,
                               const OnnxExportOptions& options, std::vector<inference::Quantizer> quantizers);

}  // namespace gpunn::interchange
