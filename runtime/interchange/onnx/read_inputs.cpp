// The graph's inputs: what a sample of each is, and where its batch is.
#include <algorithm>
#include <limits>

#include "common/text.hpp"
#include "interchange/onnx/constants/number_format.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// Those of images, where they are open, that the caller wants or that the metadata name.
std::vector<std::optional<int64_t>> Importer::with_known_sizes(std::vector<std::optional<int64_t>> sizes) const {
  std::vector<int64_t> known;
  if (const auto told = file_model_.metadata.find(kSampleKey); told != file_model_.metadata.end()) {
    known = read_input_shape(told->second);
  }
  if (known.size() == 3 && options_.image_size.size() == 2) std::ranges::copy(options_.image_size, known.begin() + 1);
  if (known.size() + 1 != sizes.size()) return sizes;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!sizes[i + 1]) sizes[i + 1] = known[i];
  }
  return sizes;
}

// The sizes that the file gives, or that the caller does.
std::vector<std::optional<int64_t>> Importer::input_sizes(const FileInput& input, bool is_only) const {
  std::vector<std::optional<int64_t>> sizes = input.shape;
  const std::vector<int64_t>& given = options_.input_shape;
  if (given.empty()) return is_only ? with_known_sizes(std::move(sizes)) : sizes;
  if (given.size() != sizes.size() && given.size() + 1 != sizes.size()) {
    if (!is_only) return sizes;
    refuse("an input shape of " + std::to_string(given.size()) + " sizes was given; the input " +
           in_quotes(input.name) + " has " + std::to_string(sizes.size()) +
           " dimensions, of which the first may be left out");
  }
  const std::size_t first = sizes.size() - given.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::optional<int64_t>& size = sizes[first + i];
    if (given[i] == 0) continue;
    if (size && *size > 0 && *size != given[i] && first + i > 0) {
      refuse("dimension " + std::to_string(first + i) + " of the input " + in_quotes(input.name) + " is " +
             std::to_string(*size) + " in the file; the input shape that was given says " + std::to_string(given[i]));
    }
    size = given[i];
  }
  return sizes;
}

// Those that something reads. Up to IR version 3 initializers were inputs too.
std::vector<const FileInput*> Importer::graph_inputs() const {
  std::vector<const FileInput*> inputs, unread;
  for (const FileInput& one : file_model_.inputs) {
    if (!file_model_.initializers.contains(one.name)) (is_used(one.name) ? inputs : unread).push_back(&one);
  }
  return inputs.empty() ? unread : inputs;
}

namespace {

// Whether the first dimension has no size of its own. One of 0 beside others means any size.
bool is_open(const std::vector<std::optional<int64_t>>& sizes) {
  return !sizes.empty() && (!sizes.front() || (*sizes.front() <= 0 && sizes.size() > 1));
}

// How a caller gives numbers of a type. Nothing: layers don't take them.
std::optional<DType> given_type(Element element) {
  if (computes_in(element)) return DType::f32;
  if (!is_integer(element)) return std::nullopt;
  const NumberFormat format = format_of(element);
  constexpr int kByte = 8, kWord = 32;
  if (!format.is_signed && format.bits <= kByte) return DType::u8;
  return format.bits + (format.is_signed ? 0 : 1) <= kWord ? DType::i32 : DType::i64;
}

}  // namespace

void Importer::read_inputs() {
  const std::vector<const FileInput*> inputs = graph_inputs();
  if (inputs.empty()) refuse("the graph has no input");
  const bool is_only = inputs.size() == 1;
  std::vector<std::vector<std::optional<int64_t>>> sizes;
  for (const FileInput* input : inputs) {
    if (!input->has_shape) {
      refuse("the input " + in_quotes(input->name) + " has no shape; export the network with one");
    }
    sizes.push_back(input_sizes(*input, is_only));
    result_.has_open_sizes =
        result_.has_open_sizes || std::any_of(input->shape.begin() + (input->shape.empty() ? 0 : 1), input->shape.end(),
                                              [](const std::optional<int64_t>& size) { return !size; });
  }
  may_be_one_sample_ = std::ranges::all_of(sizes, [](const auto& of_input) {
    return std::ranges::all_of(of_input, [](std::optional<int64_t> size) { return size && *size > 0; });
  });
  for (const FileInput* input : inputs) names_.insert(is_only ? InputSpec().name : input->name);
  const bool any_open = std::ranges::any_of(sizes, is_open);
  if (has_batch_ && !any_open) baked_batch_ = sizes.front().empty() ? 0 : *sizes.front().front();
  result_.model.inputs.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool has_rows = has_batch_ && (!any_open || is_open(sizes[i]));
    const bool is_batch = sizes[i].size() > 1 && (any_open || sizes[i].front() == baked_batch_);
    if (has_rows && !is_batch && !is_open(sizes[i])) {
      refuse("the input " + in_quotes(inputs[i]->name) + " has " + std::to_string(sizes[i].size()) +
             " dimensions; expected a batch of samples, [batch, ...], or an input whose sizes are all fixed");
    }
    read_input(*inputs[i], sizes[i], has_rows);
  }
}

// Layers take f32. Bytes and truth values become so as samples of a data set do; a layer converts wider integers.
void Importer::read_input(const FileInput& input, const std::vector<std::optional<int64_t>>& sizes, bool has_rows) {
  const std::optional<DType> dtype = given_type(input.element);
  const auto own = file_model_.metadata.find("input");  // of gpunn's files
  const bool is_prepared = own != file_model_.metadata.end() && own->second != "normalized" && own->second != "raw";
  if (!dtype || is_prepared) {
    refuse("the input " + in_quotes(input.name) + " is " + name_of(input.element) +
           (is_prepared ? ". A file of `gpunn export` must be written without --with-preprocessing"
                        : ", expected numbers or truth values"));
  }
  for (std::size_t i = has_rows ? 1 : 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      refuse("dimension " + std::to_string(i) + " of the input " + in_quotes(input.name) +
             " is 0, so that it has no numbers. Name the sizes with --input-shape (input_shape in Python and C++), or "
             "export the network with others");
    }
    if (!sizes[i] || *sizes[i] < 1 || *sizes[i] > std::numeric_limits<int32_t>::max()) {
      refuse("dimension " + std::to_string(i) + " of the input " + in_quotes(input.name) + " is " +
             (sizes[i] ? std::to_string(*sizes[i]) : "open") +
             "; only the first, the batch's, may be open. Name the sizes with --input-shape (input_shape in Python "
             "and C++), or export the network with fixed ones");
    }
  }
  InputSpec spec;
  if (graph_inputs().size() > 1) spec.name = input.name;
  Value value{.constant = {}, .layer = spec.name, .element = input.element, .shape = {}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    value.shape.push_back(has_rows && i == 0 ? Size{1, true} : Size{*sizes[i], false});
  }
  const bool is_front = has_rows && sizes.size() > 1;
  const bool is_converted = dtype != DType::f32 && dtype != DType::u8;
  if (is_front && !is_converted) take_turned_input(input.name, value);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!has_rows || i > 0) spec.shape.push_back(value.shape[i].factor);
    if (!is_front) value.parts.push_back({has_rows ? i : i + 1});
  }
  if (spec.shape.empty()) spec.shape = {1};
  if (!is_front) value.row = spec.shape;
  if (!checked_count(spec.shape)) {
    refuse("the input " + in_quotes(input.name) + " of " + to_string(value.shape) + " is larger than any memory");
  }
  result_.inputs.push_back({input.name, {*dtype, spec.shape}});
  input_layers_.insert(spec.name);
  if (is_converted) {
    spec.dtype = dtype;
    FileNode node;
    node.name = input.name;
    Call call(*this, node, opset_, {});
    value.layer = call.layer("op", {&value}, {{"op", {"copy"}}}, spec.shape, "f32").layer;
    input_layers_.insert(value.layer);
  }
  result_.model.inputs.push_back(std::move(spec));
  values_[input.name] = std::move(value);
}

// Networks of Keras take channels last, which they turn round at once: the input is then as after that.
void Importer::take_turned_input(const std::string& name, Value& value) {
  const FileNode* reader = only_reader(name);
  if (reader == nullptr || reader->op != "Transpose" || value.shape.size() != 4 || reader->outputs.size() != 1) return;
  const auto permutation = std::ranges::find(reader->attributes, "perm", &Attribute::name);
  if (permutation == reader->attributes.end()) return;
  const auto* order = std::get_if<std::vector<int64_t>>(&permutation->value);
  if (order == nullptr || *order != std::vector<int64_t>{0, 3, 1, 2}) return;
  const Sizes turned = {value.shape[0], value.shape[3], value.shape[1], value.shape[2]};
  if (turned == value.shape) {
    refuse("the input " + in_quotes(name) + " is " + to_string(value.shape) +
           ", whose channels the graph turns from the last dimension to the first. gpunn takes them in front, and "
           "equal sizes do not tell which of both a caller means. Export the network without that Transpose");
  }
  value.shape = turned;
  take_in(*reader);
  set_value(reader->outputs.front(), value);
}

}  // namespace gpunn::interchange
