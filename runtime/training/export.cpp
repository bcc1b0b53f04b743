#include <gpunn/training.hpp>
#include <gpunn/words.hpp>

#include <utility>

#include "common/files.hpp"
#include "common/text.hpp"
#include "storage/checkpoint.hpp"
#include "storage/safetensors.hpp"
#include "training/trained_model.hpp"

namespace gpunn {

ExportReport export_weights(const std::filesystem::path& model, const std::filesystem::path& file) {
  if (file.extension() != ".safetensors") {
    std::string message = "weights are written as NAME.safetensors, found " + in_quotes(file.string());
    const std::string_view about = explanation(file.extension().string());
    if (!about.empty()) message.append(". ").append(about);
    throw Error(message, ExitCode::usage);
  }
  require_writable(file);
  const std::filesystem::path source = training::checkpoint_file(model);
  storage::Checkpoint checkpoint = storage::load_checkpoint(source);
  storage::Safetensors content;
  content.metadata = {{"format", "pt"},
                      {"gpunn_version", checkpoint.gpunn_version},
                      {"experiment", parse_experiment(checkpoint.experiment, source.string() + ":experiment").name}};
  content.tensors = training::model_tensors(std::move(checkpoint));
  storage::save_safetensors(file, content);
  ExportReport report{.file = file, .tensors = static_cast<int64_t>(content.tensors.size()), .numbers = 0};
  for (const storage::StoredTensor& tensor : content.tensors) report.numbers += tensor.type.elements();
  return report;
}

}  // namespace gpunn
