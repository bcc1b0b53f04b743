#include "runs/transfer.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "common/input_file.hpp"
#include "common/text.hpp"
#include "interchange/onnx/import.hpp"
#include "nn/model.hpp"
#include "runs/name_table.hpp"
#include "runs/onnx_checkpoint.hpp"
#include "runs/preparation.hpp"
#include "runs/trained_model.hpp"
#include "storage/safetensors.hpp"

namespace gpunn::training {

namespace {

constexpr std::size_t kMostShown = 12;  // names in a list for the user

std::string listed(const std::vector<std::string>& names) {
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostShown)));
  return join(shown, ", ") +
         (names.size() > kMostShown ? " and " + std::to_string(names.size() - kMostShown) + " more" : "");
}

// How a file begins that torch.save() wrote: an archive since PyTorch 1.6, a pickle before.
bool is_of_pytorch(const std::filesystem::path& file) {
  std::array<char, 9> bytes{};
  const std::string_view head(bytes.data(), InputFile(file).read(bytes));
  if (head.starts_with("PK\3\4")) return true;
  // A .safetensors file has JSON behind its length, whose bytes may look like a pickle's first.
  if (head.size() < bytes.size() || head[8] == '{') return false;
  return head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

std::string in_shell_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

[[noreturn]] void explain_conversion(const std::filesystem::path& file) {
  std::filesystem::path converted = file;
  converted.replace_extension(".safetensors");
  throw Error(
      file.string() +
          ": a file of PyTorch's pickles, which only Python reads; init_from takes a .safetensors file. Convert it:\n" +
          "  python3 -c \"import sys, torch; from safetensors.torch import save_file; "
          "s = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
          "s = s.get('state_dict', s.get('model', s)); "
          "save_file({k: v.clone().contiguous() for k, v in s.items() if torch.is_tensor(v)}, sys.argv[2])\" " +
          in_shell_quotes(file.string()) + " " + in_shell_quotes(converted.string()) +
          "\nIt takes the state_dict, also from under 'state_dict' or 'model', where training scripts put it. "
          "Then: --set init_from.file=" +
          in_shell_quotes(converted.string()),
      ExitCode::usage);
}

struct FileWeights {
  std::vector<storage::StoredTensor> tensors;
  std::optional<ModelInfo> model;
};

FileWeights weights_of(const std::filesystem::path& file, const std::vector<int64_t>& input_shape) {
  if (is_of_pytorch(file)) explain_conversion(file);
  if (file.extension() == ".safetensors") {
    storage::Safetensors content = storage::load_safetensors(file);
    return {std::move(content.tensors), described_model(content.metadata, file)};
  }
  if (interchange::is_onnx(file)) return {onnx_tensors(file, input_shape), onnx_preparation(file, input_shape)};
  const storage::Checkpoint checkpoint = storage::load_checkpoint(file);
  return {model_tensors(checkpoint), checkpoint.model};
}

}  // namespace

StartingTensors read_starting_tensors(const InitFromConfig& config, const std::vector<int64_t>& input_shape) {
  const std::filesystem::path file = checkpoint_file(config.file);
  const NameTable names = config.names.empty() ? NameTable() : NameTable::load(config.names);
  StartingTensors start;
  start.source = file.string();
  std::map<std::string, std::string> originals;
  FileWeights weights = weights_of(file, input_shape);
  start.model = std::move(weights.model);
  for (storage::StoredTensor& tensor : weights.tensors) {
    if (tensor.type.dtype != DType::f32) continue;  // a counter, as PyTorch's num_batches_tracked
    std::string name = names.rename(tensor.name);
    const auto [other, fresh] = originals.emplace(name, tensor.name);
    if (!fresh) {
      throw Error(config.names.string() + ": " + in_quotes(other->second) + " and " + in_quotes(tensor.name) + " of " +
                      start.source + " are both called " + in_quotes(name),
                  ExitCode::usage);
    }
    start.tensors.emplace(std::move(name), std::move(tensor));
  }
  return start;
}

const storage::StoredTensor* Start::find(const std::string& name, const Shape& shape) const {
  const auto found = stored.tensors.find(name);
  return found != stored.tensors.end() && found->second.type == TensorType{DType::f32, shape} ? &found->second
                                                                                              : nullptr;
}

std::optional<Start> find_start(const Experiment& experiment, const nn::SampleTypes& samples) {
  if (experiment.init_from.file.empty()) return std::nullopt;
  Start start{.stored = read_starting_tensors(experiment.init_from, experiment.model.input_shape), .report = {}};
  TransferReport& report = start.report;
  report.source = start.stored.source;
  std::vector<nn::Parameter> tensors = nn::model_parameters(experiment.model, samples);
  std::ranges::move(nn::model_buffers(experiment.model, samples), std::back_inserter(tensors));
  std::set<std::string> names;
  for (const nn::Parameter& tensor : tensors) {
    names.insert(tensor.name);
    if (start.find(tensor.name, tensor.shape) != nullptr) {
      report.taken.push_back(tensor.name);
      continue;
    }
    const auto other = start.stored.tensors.find(tensor.name);
    report.kept.push_back(
        tensor.name + " " + to_string(TensorType{DType::f32, tensor.shape}) +
        (other == start.stored.tensors.end() ? "" : " (there " + to_string(other->second.type) + ")"));
  }
  if (tensors.empty()) return std::nullopt;
  for (const auto& [name, tensor] : start.stored.tensors) {
    if (!names.contains(name)) report.unused.push_back(name);
  }
  if (report.taken.empty()) {
    throw Error(
        report.source + ": no tensor in it has the name and shape of one of the model's, so there is nothing to " +
            "start from.\n  in the file: " + listed(report.unused) + "\n  in the model: " + listed(report.kept) +
            "\nA table of names, init_from.names, says what the file's are called here",
        ExitCode::usage);
  }
  return start;
}

std::string TransferReport::text() const {
  std::string result = "starts from " + source + ": " + std::to_string(taken.size()) + " of " +
                       std::to_string(taken.size() + kept.size()) + " tensors";
  if (!kept.empty()) result += "\n  as initialised, not from there: " + listed(kept);
  if (!unused.empty()) result += "\n  there, but not in the model: " + listed(unused);
  return result;
}

}  // namespace gpunn::training
