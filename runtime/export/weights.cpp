#include <gpunn/training.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "common/text.hpp"
#include "runs/name_table.hpp"
#include "runs/own_files.hpp"
#include "runs/preparation.hpp"
#include "runs/trained_model.hpp"
#include "storage/checkpoint.hpp"
#include "storage/safetensors.hpp"

namespace gpunn {

namespace {

// The inverse of what `init_from.names` does.
void rename_for_export(std::vector<storage::StoredTensor>& tensors, const std::filesystem::path& table,
                       ExportReport& report) {
  const training::NameTable names = training::NameTable::load(table);
  const auto fail = [&](const std::string& what) { throw Error(table.string() + ": " + what, ExitCode::usage); };
  std::vector<std::string> lost;
  for (storage::StoredTensor& tensor : tensors) {
    const std::optional<std::string> name = names.original(tensor.name);
    if (!name) {
      lost.push_back(tensor.name);
    } else if (names.has_row(*name)) {
      tensor.name = *name;
    } else {
      report.unnamed.push_back(tensor.name);
    }
  }
  if (!lost.empty()) {
    fail("no name leads to " + join(lost, ", ") + " here; give each a row, 'theirs: ours', above those that rename it");
  }
  if (report.unnamed.size() == tensors.size()) {
    fail("no row names a tensor of the model; it has " + join(report.unnamed, ", "));
  }
}

// PyTorch's batch norm counts its batches, and its state_dict has the count.
void add_batch_counts(std::vector<storage::StoredTensor>& tensors, int64_t batches) {
  constexpr std::string_view kMean = ".running_mean";
  std::vector<storage::StoredTensor> counts;
  for (const storage::StoredTensor& tensor : tensors) {
    if (!tensor.name.ends_with(kMean)) continue;
    storage::StoredTensor count;
    count.name = tensor.name.substr(0, tensor.name.size() - kMean.size()) + ".num_batches_tracked";
    count.type = {DType::i64, {}};
    const auto bytes = std::as_bytes(std::span(&batches, 1));
    count.values.assign(bytes.begin(), bytes.end());
    counts.push_back(std::move(count));
  }
  std::ranges::move(counts, std::back_inserter(tensors));
}

}  // namespace

ExportReport export_weights(const std::filesystem::path& model, const std::filesystem::path& file,
                            const std::filesystem::path& names, const std::vector<Override>& overrides) {
  if (file.extension() != ".safetensors") {
    std::string message =
        "a model is written as NAME.safetensors (its weights) or NAME.onnx, found " + in_quotes(file.string());
    const std::string_view about = explanation(file.extension().string());
    if (!about.empty()) message.append(". ").append(about);
    throw Error(message, ExitCode::usage);
  }
  training::require_output(file);
  training::TrainedFile trained = training::read_trained(model, overrides);
  storage::Checkpoint& checkpoint = trained.checkpoint;
  const Experiment& experiment = trained.experiment;
  const int64_t batches = checkpoint.counters["step"] * experiment.accumulate;
  ExportReport report{.file = file, .tensors = 0, .numbers = 0, .unnamed = {}};
  storage::Safetensors content;
  if (checkpoint.model) content.metadata = training::model_metadata(*checkpoint.model);
  content.metadata["gpunn_version"] = checkpoint.gpunn_version;  // of the program that trained it
  content.metadata.insert({{"format", "pt"}, {"experiment", experiment.name}});
  content.tensors = training::model_tensors(checkpoint);
  if (!names.empty()) {
    rename_for_export(content.tensors, names, report);
    add_batch_counts(content.tensors, batches);
  }
  storage::save_safetensors(file, content);
  report.tensors = static_cast<int64_t>(content.tensors.size());
  for (const storage::StoredTensor& tensor : content.tensors) report.numbers += tensor.type.elements();
  return report;
}

}  // namespace gpunn
