// What the graph's outputs are of what layers give.
#include <algorithm>
#include <iterator>

#include "common/text.hpp"
#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

// One number for each sample, which has no dimension but the batch's.
Value as_number(Call& call, const Value& row_of_one) {
  return call.layer("op", {&row_of_one}, {{"op", {"reduce"}}, {"kind", {"sum"}}, {"axes", {"1"}}}, {});
}

}  // namespace

// A model of gpunn's gives, behind what its first output gives, what the task makes of that.
void Importer::drop_predictions() {
  if (file_model_.producer != "gpunn") return;
  std::vector<std::string>& outputs = file_model_.outputs;
  const auto named = file_model_.metadata.find(kPredictionsKey);
  if (named != file_model_.metadata.end()) {
    std::erase(outputs, named->second);
  } else if (outputs.size() == 2) {
    outputs.pop_back();
  }
}

std::vector<Value> Importer::give_outputs() {
  std::vector<Value> given;
  for (const std::string& output : file_model_.outputs) {
    const Value* last = find_value(output);
    if (last == nullptr) refuse("no node gives the output " + in_quotes(output));
    if (last->constant && has_batch_) refuse("the output " + in_quotes(output) + " does not depend on the input");
    try {
      given.push_back(last->constant ? constant_output(output, *last->constant) : output_value(output, *last));
    } catch (const Unsupported& problem) {
      refuse("the output " + in_quotes(output) + " " + problem.what());
    }
  }
  return given;
}

// What is known already, for each sample: a layer that joins it to the sample repeats it.
Value Importer::constant_output(const std::string& output, const Constant& constant) {
  FileNode node;
  node.name = output;
  Call call(*this, node, opset_, {});
  const Constant values = as_floats(constant);
  const int64_t count = element_count(values.shape);
  if (count == 0) refuse("the output " + in_quotes(output) + " has no numbers");
  const ImportedInput& input = result_.inputs.front();
  const Value flat = call.reshaped(batch_first(call, *find_value(input.name)), {input.sample.elements()});
  const Value own = constant_layer(call, values, {count});
  const Value both = call.layer("concat", {&flat, &own}, {}, {row_of(flat).front() + count});
  const Value last = sliced(call, both, 1, row_of(flat).front(), count);
  return values.shape.empty() ? as_number(call, last) : call.reshaped(last, values.shape);
}

// What the last layer gives, rows of the batch in front.
Value Importer::output_value(const std::string& output, const Value& last) {
  FileNode node;
  node.name = output;
  Call call(*this, node, opset_, {});
  const BatchPlace place = place_of(last);
  const bool has_rows = place.dimension == 0 && place.others == 1;
  if (has_batch_ ? !has_rows : !place.is_outside()) {
    refuse("the output " + in_quotes(output) + " is " + to_string(last.shape) +
           "; expected one whose first dimension is the batch. Name the sizes of the whole input for a network that "
           "computes one sample at a time (--input-shape)");
  }
  Value y = batch_first(call, last);
  const Shape row = row_of(y);
  if (last.shape.size() == (has_batch_ ? 1 : 0)) return as_number(call, y);
  if (!is_input(y.layer)) return y;
  return call.layer("reshape", {&y}, {{"shape", texts(row)}}, row);
}

// What does not lead to an output, as a sigmoid that became part of a SiLU. The layer of an only output comes last.
void Importer::remove_unused(const std::vector<Value>& outputs) {
  std::set<std::string> used;
  for (const Value& output : outputs) used.insert(output.layer);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (used.contains(layers_[i].name)) used.insert(layers_[i].from.begin(), layers_[i].from.end());
  }
  std::vector<InputSpec>& inputs = result_.model.inputs;
  for (std::size_t i = inputs.size(); i-- > 0;) {
    if (used.contains(inputs[i].name) || inputs.size() == 1) continue;
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(i));
    result_.inputs.erase(result_.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<LayerSpec> last;
  for (LayerSpec& layer : layers_) {
    if (!used.contains(layer.name)) continue;
    for (auto& [name, tensor] : tensors_[layer.name]) result_.tensors.push_back(std::move(tensor));
    const bool is_last = outputs.size() == 1 && layer.name == outputs.front().layer;
    (is_last ? last : result_.model.layers).push_back(std::move(layer));
  }
  std::ranges::move(last, std::back_inserter(result_.model.layers));
  for (std::size_t i = 0; outputs.size() > 1 && i < outputs.size(); ++i) {
    result_.model.outputs.push_back({file_model_.outputs[i], outputs[i].layer});
  }
}

}  // namespace gpunn::interchange
