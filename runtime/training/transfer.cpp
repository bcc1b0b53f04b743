#include "training/transfer.hpp"

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "storage/safetensors.hpp"
#include "training/name_table.hpp"
#include "training/trained_model.hpp"

namespace gpunn::training {

namespace {

constexpr std::size_t kMostShown = 12;  // names in a list for the user

std::string listed(const std::vector<std::string>& names) {
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostShown)));
  return join(shown, ", ") +
         (names.size() > kMostShown ? " and " + std::to_string(names.size() - kMostShown) + " more" : "");
}

std::vector<storage::StoredTensor> tensors_of(const std::filesystem::path& file) {
  if (file.extension() == ".safetensors") return storage::load_safetensors(file).tensors;
  return model_tensors(storage::load_checkpoint(file));
}

}  // namespace

StartingTensors read_starting_tensors(const InitFromConfig& config) {
  const std::filesystem::path file = checkpoint_file(config.file);
  const NameTable names = config.names.empty() ? NameTable() : NameTable::load(config.names);
  StartingTensors start;
  start.source = file.string();
  std::map<std::string, std::string> originals;
  for (storage::StoredTensor& tensor : tensors_of(file)) {
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

const storage::StoredTensor* match(const StartingTensors& start, const std::string& name, const Shape& shape,
                                   TransferReport& report) {
  const TensorType type{DType::f32, shape};
  const auto found = start.tensors.find(name);
  if (found != start.tensors.end() && found->second.type == type) {
    report.taken.push_back(name);
    return &found->second;
  }
  if (found != start.tensors.end()) report.misshapen.insert(name);
  report.kept.push_back(name + " " + to_string(type) +
                        (found == start.tensors.end() ? "" : " (there " + to_string(found->second.type) + ")"));
  return nullptr;
}

void finish(const StartingTensors& start, TransferReport& report) {
  report.source = start.source;
  std::vector<std::string> taken = report.taken;
  std::sort(taken.begin(), taken.end());
  for (const auto& [name, tensor] : start.tensors) {
    const bool known = std::binary_search(taken.begin(), taken.end(), name) || report.misshapen.count(name) != 0;
    if (!known) report.unused.push_back(name);
  }
  if (!report.taken.empty()) return;
  throw Error(start.source + ": no tensor in it has the name and shape of one of the model's, so there is nothing to " +
                  "start from.\n  in the file: " + listed(report.unused) + "\n  in the model: " + listed(report.kept) +
                  "\nA table of names, init_from.names, says what the file's are called here",
              ExitCode::usage);
}

std::string TransferReport::text() const {
  std::string result = "starts from " + source + ": " + std::to_string(taken.size()) + " of " +
                       std::to_string(taken.size() + kept.size()) + " tensors";
  if (!kept.empty()) result += "\n  as initialised, not from there: " + listed(kept);
  if (!unused.empty()) result += "\n  there, but not in the model: " + listed(unused);
  return result;
}

}  // namespace gpunn::training
