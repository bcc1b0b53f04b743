#include "runs/onnx_checkpoint.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "data/registry.hpp"
#include "feed/model_samples.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "interchange/onnx/import.hpp"
#include "nn/model.hpp"
#include "storage/model_info.hpp"
#include "tasks/losses.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

namespace {

// Integers have no normalisation.
void take_as_is(Field& input) {
  if (!fields::kind_of(input).is_normalised()) return;
  input.mean.assign(static_cast<std::size_t>(input.type.shape.front()), 0);
  input.stddev.assign(input.mean.size(), fields::unit_of(input.type.dtype));
}

bool takes_raw_samples(const interchange::ImportedModel& imported) {
  const auto input = imported.metadata.find("input");
  return input != imported.metadata.end() && input->second == "raw";
}

const Shape& sample_of(const interchange::ImportedModel& imported) { return imported.inputs.front().sample.shape; }

ModelInfo info_of(const interchange::ImportedModel& imported, const std::filesystem::path& file) {
  ModelInfo info;
  if (const auto told = imported.metadata.find("model"); told != imported.metadata.end()) {
    try {
      info = storage::parse_model_info(told->second);
    } catch (const storage::ModelInfoFailure& failure) {
      throw Error(file.string() + ": what its metadata tell of the model: " + failure.what(), ExitCode::usage);
    }
    const bool is_only = imported.inputs.size() == 1 && info.fields.of(Role::input).size() == 1;
    for (Field& field : info.fields.fields) {
      if (field.role != Role::input) continue;
      const auto input = std::ranges::find(imported.inputs, field.name, &interchange::ImportedInput::name);
      if (input == imported.inputs.end() && !is_only) continue;  // which the model does not use
      const Shape& sample = is_only ? sample_of(imported) : input->sample.shape;
      if (imported.has_open_sizes) field.type.shape = sample;
      if (field.type.shape != sample) {
        throw Error(file.string() + ": its metadata tell of samples of " + to_string(field.type.shape) +
                        ", its graph takes " + to_string(sample),
                    ExitCode::usage);
      }
      // A graph that takes raw samples normalises them by nodes of its own, which are layers here.
      if (takes_raw_samples(imported)) take_as_is(field);
    }
    return info;
  }
  std::erase_if(info.fields.fields, [](const Field& field) { return field.role == Role::input; });
  for (const interchange::ImportedInput& input : imported.inputs) {
    Field field{.name = input.name,
                .role = Role::input,
                .kind = std::string(fields::input_kind(input.sample)),
                .type = input.sample};
    take_as_is(field);
    info.fields.fields.insert(info.fields.fields.end() - 1, std::move(field));  // in front of the target
  }
  return info;
}

bool same_layers(const ModelSpec& a, const ModelSpec& b) {
  const auto same_parameter = [](const LayerParameter& x, const LayerParameter& y) {
    return x.name == y.name && x.values == y.values;
  };
  return std::ranges::equal(a.layers, b.layers, [&](const LayerSpec& x, const LayerSpec& y) {
    return x.type == y.type && x.name == y.name && x.from == y.from &&
           std::ranges::equal(x.parameters, y.parameters, same_parameter);
  });
}

// Whether the layers of a file that leaves the size of its images open are those for every size.
bool has_layers_for_any_size(const interchange::ImportedModel& imported, const std::filesystem::path& file) {
  const Shape& sample = sample_of(imported);
  if (!imported.has_open_sizes || imported.inputs.size() != 1 || sample.size() != 3) return false;
  const std::vector<int64_t> other = {2 * sample[1], 4 * sample[2]};
  try {
    return same_layers(imported.model, interchange::import_onnx(file, {.image_size = other}).model);
  } catch (const Error&) {  // no images of that size
    return false;
  }
}

// The loss, if it gives the outputs their meaning.
std::string loss_text(const interchange::ImportedModel& imported, const ModelInfo& info) {
  const std::optional<LossKind> loss = tasks::find(info.task).implied_loss(
      nn::output_shape(imported.model, model_samples(info.fields)), info.fields.target().count());
  return loss ? "loss: " + tasks::name_of(*loss) + "\n" : "";
}

// Whether a name is that of a data set with what the task alone learns.
bool is_set_for(const tasks::Task& task, const std::string& name) {
  return std::ranges::any_of(data::registry(), [&](const data::DatasetRow& row) {
    return row.name == name && row.learnt == task.target_kind();
  });
}

// A set of photographs that is named alone has the model's scale and colours in place of its defaults.
std::vector<Override> with_photographs(const std::vector<Override>& overrides, const ModelInfo& info) {
  std::vector<Override> result;
  for (const Override& one : overrides) {
    result.push_back(one);
    if (one.key != "data" || !info.photographs || !is_set_for(tasks::find(info.task), one.value)) continue;
    const PhotographInfo& own = *info.photographs;
    const bool enlarged = own.input == ModelInput::enlarged;
    const int64_t patch = info.fields.input().type.shape.at(1) * (enlarged ? 1 : own.scale);
    result.push_back({"data.scale", std::to_string(own.scale)});
    result.push_back({"data.colours", own.colours == ColourPlanes::rgb ? "rgb" : "luma"});
    result.push_back({"data.input", enlarged ? "enlarged" : "small"});
    result.push_back({"data.patch_size", std::to_string(patch)});
  }
  return result;
}

// The tensors that a model wants, in its order.
std::vector<storage::StoredTensor> in_order(const std::vector<nn::Parameter>& wanted,
                                            const std::map<std::string, const interchange::ImportedTensor*>& found) {
  std::vector<storage::StoredTensor> result;
  for (const nn::Parameter& one : wanted) {
    const auto tensor = found.find(one.name);
    if (tensor == found.end()) continue;  // which the comparison with the layout tells
    result.push_back(storage::stored_floats(one.name, tensor->second->shape, *tensor->second->values));
  }
  return result;
}

}  // namespace

namespace {

// Takes the sizes of the input out of the overrides; empty: there are none.
std::vector<int64_t> take_input_shape(std::vector<Override>& overrides) {
  constexpr std::string_view kKey = "model.input_shape";
  std::vector<int64_t> sizes;
  for (const Override& one : overrides) {
    if (one.key == kKey) sizes = interchange::read_input_shape(one.value);
  }
  std::erase_if(overrides, [&](const Override& one) { return one.key == kKey; });
  return sizes;
}

}  // namespace

TrainedFile read_onnx_checkpoint(const std::filesystem::path& file, std::vector<Override> overrides,
                                 const std::vector<int64_t>& image_size) {
  interchange::ImportedModel imported =
      interchange::import_onnx(file, {.input_shape = take_input_shape(overrides), .image_size = image_size});
  TrainedFile result{.file = file, .checkpoint = {}, .experiment = {}, .names_data = false};
  if (image_size.empty() && has_layers_for_any_size(imported, file)) imported.model.inputs.front().shape.clear();
  const bool tells_itself = imported.metadata.contains("model");
  ModelInfo info = info_of(imported, file);
  result.experiment =
      parse_experiment("task: " + info.task + "\nmodel: {layers: [flatten]}\ndata: {dataset: " + kArrays +
                           ", batch_size: 1}\n" + loss_text(imported, info),
                       file.string(), with_photographs(overrides, info));
  Experiment& experiment = result.experiment;
  experiment.file = file;
  experiment.model = std::move(imported.model);
  // The normalisation of a file from elsewhere is that of the data, which knows what it was trained with.
  if (tells_itself && experiment.data.mean.empty()) experiment.data.mean = info.fields.input().mean;
  if (tells_itself && experiment.data.stddev.empty()) experiment.data.stddev = info.fields.input().stddev;
  std::map<std::string, const interchange::ImportedTensor*> found;
  for (const interchange::ImportedTensor& tensor : imported.tensors) found[tensor.name] = &tensor;
  const nn::SampleTypes samples = model_samples(info.fields);
  result.checkpoint.parameters = in_order(nn::model_parameters(experiment.model, samples), found);
  result.checkpoint.buffers = in_order(nn::model_buffers(experiment.model, samples), found);
  result.checkpoint.model = std::move(info);
  result.checkpoint.backend = experiment.backend;
  result.checkpoint.experiment = resolved_yaml(experiment);
  return result;
}

std::vector<storage::StoredTensor> onnx_tensors(const std::filesystem::path& file,
                                                const std::vector<int64_t>& input_shape) {
  std::vector<storage::StoredTensor> tensors;
  for (const interchange::ImportedTensor& tensor :
       interchange::import_onnx(file, {.input_shape = input_shape}).tensors) {
    tensors.push_back(storage::stored_floats(tensor.name, tensor.shape, *tensor.values));
  }
  return tensors;
}

std::optional<ModelInfo> onnx_preparation(const std::filesystem::path& file, const std::vector<int64_t>& input_shape) {
  const interchange::ImportedModel imported = interchange::import_onnx(file, {.input_shape = input_shape});
  if (!imported.metadata.contains("model") || takes_raw_samples(imported)) return std::nullopt;
  return info_of(imported, file);
}

}  // namespace gpunn::training
