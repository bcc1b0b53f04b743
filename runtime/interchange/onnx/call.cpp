#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/text.hpp"
#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/nodes/quantization.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

Sizes sizes_of(const Shape& shape) {
  Sizes sizes;
  for (const int64_t size : shape) sizes.push_back({size, false});
  return sizes;
}

Sizes batch_of(const Shape& row) {
  Sizes sizes = sizes_of(row);
  sizes.insert(sizes.begin(), Size{1, true});
  return sizes;
}

}  // namespace

std::string to_string(const Sizes& sizes) {
  std::vector<std::string> parts;
  for (const Size& size : sizes) {
    if (!size.of_batch) {
      parts.push_back(std::to_string(size.factor));
    } else {
      parts.push_back(size.factor == 1 ? "N" : std::to_string(size.factor) + "*N");
    }
  }
  return "[" + join(parts, ", ") + "]";
}

Value constant_value(Constant constant) {
  Sizes shape = sizes_of(constant.shape);
  const Element element = constant.element;
  return {.constant = std::make_shared<const Constant>(std::move(constant)),
          .layer = {},
          .element = element,
          .shape = std::move(shape)};
}

Constant as_floats(const Constant& constant) {
  if (is_floating(constant.element)) return constant;
  std::vector<float> values;
  values.reserve(constant.integers.size());
  for (const Size& size : constant.integers) {
    if (size.of_batch) throw Unsupported("computes with the size of the batch");
    values.push_back(static_cast<float>(size.factor));
  }
  return floats_constant(constant.shape, std::move(values));
}

Shape row_of(const Value& x) {
  Shape row;
  for (std::size_t d = 1; d < x.shape.size(); ++d) row.push_back(x.shape[d].factor);
  return row;
}

std::vector<std::string> texts(const std::vector<int64_t>& values) {
  std::vector<std::string> result;
  result.reserve(values.size());
  for (const int64_t value : values) result.push_back(std::to_string(value));
  return result;
}

std::string text(double value) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

std::string text(bool value) { return value ? "true" : "false"; }

const Value& Call::input(std::size_t i) const {
  if (!has(i)) throw Unsupported("input " + std::to_string(i) + " is missing");
  return *inputs_[i];
}

const Value& Call::data_anywhere(std::size_t i) const {
  const Value& value = input(i);
  if (value.constant) throw Unsupported("input " + std::to_string(i) + " is a constant, where layers take data");
  return value;
}

const Value& Call::data(std::size_t i) const {
  const Value& value = data_anywhere(i);
  if (is_placed(value)) {
    throw Unsupported("input " + std::to_string(i) + " is " + to_string(value.shape) +
                      "; layers take values whose first dimension is the batch");
  }
  return value;
}

Shape Call::sample(std::size_t i) const {
  const Value& value = data(i);
  Shape row;
  for (std::size_t d = 1; d < value.shape.size(); ++d) {
    if (value.shape[d].of_batch) throw Unsupported("input " + std::to_string(i) + " has the batch twice");
    row.push_back(value.shape[d].factor);
  }
  return row;
}

const Constant& Call::constant(std::size_t i, const char* what) const {
  const Value& value = input(i);
  if (!value.constant) throw Unsupported(std::string(what) + " must be known before the network runs");
  return *value.constant;
}

const Constant& Call::floats(std::size_t i, const char* what) const {
  const Constant& found = constant(i, what);
  if (!is_floating(found.element)) throw Unsupported(std::string(what) + " are " + name_of(found.element));
  return found;
}

std::vector<int64_t> Call::integers(std::size_t i, const char* what) const {
  const Constant& found = constant(i, what);
  if (is_floating(found.element)) throw Unsupported(std::string(what) + " must be integers");
  std::vector<int64_t> result;
  for (const Size& size : found.integers) {
    if (size.of_batch) throw Unsupported(std::string(what) + " depends on the size of the batch");
    result.push_back(size.factor);
  }
  return result;
}

double Call::scalar(std::size_t i, const char* what) const {
  const Constant& found = constant(i, what);
  if (found.count() != 1) throw Unsupported(std::string(what) + " must be a single number");
  return found.number(0);
}

const Attribute* Call::find(const char* name) const {
  const auto found = std::ranges::find(node_.attributes, name, &Attribute::name);
  return found == node_.attributes.end() ? nullptr : &*found;
}

int64_t Call::integer(const char* name, int64_t fallback) const {
  const Attribute* found = find(name);
  if (found == nullptr) return fallback;
  if (const auto* value = std::get_if<int64_t>(&found->value)) return *value;
  throw Unsupported("its attribute " + std::string(name) + " must be an integer");
}

double Call::number(const char* name, double fallback) const {
  const Attribute* found = find(name);
  if (found == nullptr) return fallback;
  if (const auto* value = std::get_if<float>(&found->value)) return *value;
  throw Unsupported("its attribute " + std::string(name) + " must be a number");
}

std::string Call::word(const char* name, const std::string& fallback) const {
  const Attribute* found = find(name);
  if (found == nullptr) return fallback;
  if (const auto* value = std::get_if<std::string>(&found->value)) return *value;
  throw Unsupported("its attribute " + std::string(name) + " must be a text");
}

std::vector<int64_t> Call::list(const char* name, const std::vector<int64_t>& fallback) const {
  const Attribute* found = find(name);
  if (found == nullptr) return fallback;
  if (const auto* value = std::get_if<std::vector<int64_t>>(&found->value)) return *value;
  throw Unsupported("its attribute " + std::string(name) + " must be integers");
}

std::vector<float> Call::numbers(const char* name) const {
  const Attribute* found = find(name);
  if (found == nullptr) return {};
  if (const auto* value = std::get_if<std::vector<float>>(&found->value)) return *value;
  throw Unsupported("its attribute " + std::string(name) + " must be numbers");
}

const Constant* Call::tensor(const char* name) const {
  const Attribute* found = find(name);
  return found == nullptr ? nullptr : std::get_if<Constant>(&found->value);
}

std::size_t Call::axis(const char* name, int64_t fallback, std::size_t rank) const {
  return dimension(integer(name, fallback), rank);
}

std::size_t Call::dimension(int64_t given, std::size_t rank) const {
  return dimension_with_batch_first(place_, sound_dimension(given, rank - place_.shift()));
}

void Call::require_batch_before(std::size_t last) const {
  std::size_t rank = 0;
  for (const Value* input : inputs_) {
    if (input != nullptr && !input->constant) rank = std::max(rank, input->shape.size() - place_.shift());
  }
  if (!place_.is_outside() && place_.dimension + last >= rank)
    throw Unsupported("computes with different rows of the batch");
}

void Call::require_first_output_alone(const char* reason) const {
  for (std::size_t i = 1; i < node_.outputs.size(); ++i) {
    if (!node_.outputs[i].empty() && importer_.is_used(node_.outputs[i])) throw Unsupported(reason);
  }
}

Value Call::in_place(Value value) {
  if (value.constant || is_placed(value)) return value;
  if (is_one_as_batch_) return batch_as_one(*this, value);
  if (place_ == BatchPlace() && extra_ == 0) return value;
  return placed(*this, value, place_, value.shape.size() - place_.shift() - extra_);
}

void Call::give(std::size_t output, Value value) {
  if (output >= node_.outputs.size() || node_.outputs[output].empty()) return;
  importer_.set_value(node_.outputs[output], in_place(std::move(value)));
}

void Call::give_layer(const std::string& type, const Keys& keys, const Shape& row) {
  give(layer(type, {&data(0)}, keys, row));
}

Value Call::layer(const std::string& type, const std::vector<const Value*>& from, const Keys& keys, const Shape& row,
                  const std::string& suffix) {
  if (!checked_count(row)) throw Unsupported("gives rows of " + gpunn::to_string(row) + ", larger than any memory");
  LayerSpec spec;
  spec.type = type;
  spec.name = importer_.unique_name(node_, suffix);
  for (const Value* value : from) spec.from.push_back(value->layer);
  for (const auto& [name, values] : keys) spec.parameters.push_back({name, values, {}});
  Value value{.constant = {}, .layer = spec.name, .shape = batch_of(row), .parts = {}, .row = {}};
  importer_.add_layer(std::move(spec));
  return value;
}

void Call::set_tensor(const Value& value, const std::string& name, Shape shape, const Constant& values) {
  const std::optional<int64_t> count = checked_count(shape);
  if (!is_floating(values.element) || count != static_cast<int64_t>(values.floats->size())) {
    throw Unsupported("its " + name + " is " + name_of(values.element) + gpunn::to_string(values.shape) +
                      ", expected float" + gpunn::to_string(shape));
  }
  if (name == "weight") keep_scales(*this, value, shape, values);
  importer_.tensors_of(value.layer)[name] = {value.layer + "." + name, std::move(shape), values.floats};
}

Value Call::apply(const std::string& op, const std::vector<Value>& inputs, std::vector<Attribute> attributes) {
  return importer_.apply(node_, op, inputs, std::move(attributes));
}

Value Call::reshaped(const Value& x, const Shape& row) {
  if (x.shape == batch_of(row)) return x;
  if (row.empty() || row.size() > 7) {
    throw Unsupported("gives rows of " + gpunn::to_string(row) + "; layers give 1 to 7 dimensions");
  }
  Value y = row.size() == 1 ? layer("flatten", {&x}, {}, row, "flat")
                            : layer("reshape", {&x}, {{"shape", texts(row)}}, row, "shape");
  y.element = x.element;
  return y;
}

Value Call::transposed(const Value& x, const std::vector<int64_t>& permutation) {
  if (std::ranges::is_sorted(permutation)) return x;
  Shape row;
  for (const int64_t from : permutation) row.push_back(x.shape[static_cast<std::size_t>(from) + 1].factor);
  // Two in a row are one, and none where the second undoes the first.
  const LayerSpec* before = importer_.find_layer(x.layer);
  if (before != nullptr && before->type == "transpose") {
    std::vector<int64_t> both;
    for (const int64_t from : permutation) {
      both.push_back(std::stoll(before->parameters.front().values[static_cast<std::size_t>(from)]));
    }
    Value source = x;
    source.layer = before->from.front();
    for (std::size_t i = 0; i < both.size(); ++i) source.shape[static_cast<std::size_t>(both[i]) + 1].factor = row[i];
    return transposed(source, both);
  }
  Value y = layer("transpose", {&x}, {{"permutation", texts(permutation)}}, row, "order");
  y.element = x.element;
  return y;
}

Value Call::scaled(const Value& x, double factor) {
  if (factor == 1) return x;
  Value y = layer("affine", {&x}, {{"shape", {"1"}}, {"bias", {"false"}}, {"trained", {"false"}}}, row_of(x));
  set_tensor(y, "weight", {1}, floats_constant({1}, {static_cast<float>(factor)}));
  return y;
}

}  // namespace gpunn::interchange
