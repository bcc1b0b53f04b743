#include "eager/op.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cctype>
#include <utility>

#include "eager/program.hpp"
#include "graph/op_attributes.hpp"

namespace gpunn::eager {

namespace {

const OpDescription& described(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::ranges::find(catalogue(), lower, &OpDescription::name);
  if (found != catalogue().end()) return *found;
  std::vector<std::string> names;
  for (const OpDescription& one : catalogue()) names.push_back(one.name);
  throw Error("there is no op '" + lower + "'" + did_you_mean(lower, names), ExitCode::usage);
}

}  // namespace

Op::Op(std::string_view name, std::span<const NamedAttribute> attributes) {
  auto impl = std::make_shared<Impl>();
  impl->description = &described(name);
  impl->info = &ops::op_info(impl->description->id);
  impl->attrs = graph::attributes_of(impl->info->id, impl->description->name, attributes);
  impl_ = std::move(impl);
}

Op OpAccess::make(int32_t id, graph::Attributes attrs) {
  auto impl = std::make_shared<Op::Impl>();
  impl->info = &ops::op_info(id);
  impl->description = &*std::ranges::find(catalogue(), id, &OpDescription::id);
  impl->attrs = std::move(attrs);
  Op op;
  op.impl_ = std::move(impl);
  return op;
}

const OpDescription& Op::description() const { return *impl_->description; }

std::vector<TensorType> Op::output_types(std::span<const TensorType> inputs) const {
  std::vector<TensorType> packed(inputs.begin(), inputs.end());
  for (TensorType& type : packed) type.layout = Layout::packed;
  try {
    return impl_->info->infer(settled_attributes(impl_->info->id, impl_->attrs, packed), packed);
  } catch (const Error& error) {
    throw Error(impl_->description->name + ": " + error.what(), ExitCode::usage);
  }
}

GradientNeeds Op::gradient_needs(std::span<const TensorType> inputs, const std::vector<bool>& wanted) const {
  const std::vector<TensorType> outputs = output_types(inputs);
  std::vector<TensorType> gradients;
  for (std::size_t i = 0; i < std::min(inputs.size(), wanted.size()); ++i) {
    if (wanted[i]) gradients.push_back(inputs[i]);
  }
  const Program program =
      gradient_program(impl_->info->id, impl_->attrs, outputs.at(0), inputs, outputs, wanted, gradients);
  const auto begin = program.read.begin() + 1;  // behind the cotangent
  const auto middle = begin + std::ssize(inputs);
  return {.inputs = {begin, middle}, .outputs = {middle, middle + std::ssize(outputs)}};
}

}  // namespace gpunn::eager
