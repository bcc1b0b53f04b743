#include <gpunn/error.hpp>
#include <gpunn/op_ranges.hpp>
#include <gpunn/ops.h>

#include <cmath>
#include <limits>
#include <set>

#include "catch.hpp"
#include "eager/support.hpp"
#include "graph/op_attributes.hpp"
#include "graph/output_types.hpp"

using namespace gpunn;
using namespace gpunn::eager;

TEST_CASE("the catalogue describes each op", "[eager]") {
  CHECK(catalogue().size() == ops::all().size());
  for (const OpDescription& op : catalogue()) {
    INFO(op.name);
    CHECK(!op.summary.empty());
    CHECK(op.summary.find('\n') == std::string::npos);
    std::set<std::string> names;
    for (const TensorInfo& input : op.inputs) CHECK(names.insert(input.name).second);
    for (const AttributeInfo& attribute : op.attributes) {
      CHECK(names.insert(attribute.name).second);
      CHECK(!attribute.help.empty());
    }
  }
}

namespace {

// A number as an attribute of this kind.
AttributeValue valued(AttributeKind kind, double value) {
  switch (kind) {
    case AttributeKind::number:
    case AttributeKind::numbers:
      return value;
    case AttributeKind::list:
    case AttributeKind::pair:
      return std::vector<int64_t>(kind == AttributeKind::pair ? 2 : 1, static_cast<int64_t>(value));
    default:
      return static_cast<int64_t>(value);
  }
}

// Values of all attributes of an op, each within its range.
std::vector<NamedAttribute> fitting_values(int32_t op) {
  std::vector<NamedAttribute> values;
  for (const graph::AttributeField* field : graph::attribute_fields(op)) {
    const AttributeInfo& info = field->info;
    if (info.fallback && info.kind != AttributeKind::elements) {
      values.emplace_back(info.name, *info.fallback);
    } else if (info.kind == AttributeKind::axes) {
      values.emplace_back(info.name, std::vector<int64_t>{0});
    } else {
      const ops::Range range(info.range);
      values.emplace_back(info.name, valued(info.kind, range.contains(1) ? 1 : range.low() + 1));
    }
  }
  return values;
}

// What is said of attributes that are out of their ranges; empty where all are within.
std::string refusal_of(const OpDescription& op, const std::vector<NamedAttribute>& values) {
  const graph::Attributes attributes = graph::attributes_of(op.id, op.name, values);
  try {
    ops::require_attribute_ranges(op.id, attributes.data());
  } catch (const ops::Misfit& misfit) {
    return misfit.what();
  }
  return {};
}

}  // namespace

TEST_CASE("an attribute out of its range is refused by its name", "[eager]") {
  std::size_t refused = 0;
  for (const OpDescription& op : catalogue()) {
    const std::vector<NamedAttribute> right = fitting_values(op.id);
    INFO(op.name);
    CHECK(refusal_of(op, right) == "");
    for (const graph::AttributeField* field : graph::attribute_fields(op.id)) {
      const AttributeInfo& info = field->info;
      if (info.range.empty()) continue;
      const bool real = info.kind == AttributeKind::number || info.kind == AttributeKind::numbers;
      const ops::Range range(info.range);
      std::vector<double> outside;
      if (real) outside = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
      if (std::isfinite(range.low())) outside.push_back(range.contains(range.low()) ? range.low() - 1 : range.low());
      if (std::isfinite(range.high()))
        outside.push_back(range.contains(range.high()) ? range.high() + 1 : range.high());
      for (const double value : outside) {
        if (!real && value > std::numeric_limits<int32_t>::max()) continue;
        std::vector<NamedAttribute> wrong = right;
        std::ranges::find(wrong, info.name, &NamedAttribute::first)->second = valued(info.kind, value);
        INFO(info.name << " " << value << ", " << info.range);
        CHECK_THAT(refusal_of(op, wrong), Catch::Matchers::StartsWith(std::string(field->member) + " ") &&
                                              Contains(" must be " + range.text()));
        ++refused;
      }
    }
  }
  CHECK(refused > 300);
}

TEST_CASE("attributes are read by name", "[eager]") {
  const auto conv = [](std::vector<NamedAttribute> given) {
    return graph::attributes_of(GPUNN_OP_CONV2D, "conv2d", given).as<gpunn_conv2d_attrs>();
  };
  CHECK(conv({}).struct_size == sizeof(gpunn_conv2d_attrs));
  CHECK(conv({}).stride[1] == 1);
  CHECK(conv({}).groups == 1);
  CHECK(conv({{"stride", int64_t{2}}}).stride[1] == 2);
  CHECK(conv({{"pad", std::vector<int64_t>{1, 3}}}).pad[1] == 3);

  const std::vector<NamedAttribute> window{{"window", int64_t{3}}};
  const auto pool = graph::attributes_of(GPUNN_OP_MAX_POOL2D, "max_pool2d", window).as<gpunn_pool2d_attrs>();
  CHECK(pool.window[0] == 3);
  CHECK(pool.stride[1] == 3);

  const std::vector<NamedAttribute> reduce{{"kind", std::string("max")}, {"axes", std::vector<int64_t>{0, 2}}};
  const auto reduced = graph::attributes_of(GPUNN_OP_REDUCE, "reduce", reduce).as<gpunn_reduce_attrs>();
  CHECK(reduced.kind == GPUNN_REDUCE_MAX);
  CHECK(reduced.axes == 5);

  const std::vector<NamedAttribute> box{{"start", std::vector<int64_t>{1, 2}}, {"size", std::vector<int64_t>{3, 4}}};
  const auto slice = graph::attributes_of(GPUNN_OP_SLICE, "slice", box).as<gpunn_slice_attrs>();
  CHECK(slice.rank == 2);
  CHECK(slice.start[1] == 2);
  CHECK(slice.size[0] == 3);
}

TEST_CASE("wrong attributes are told with the right ones", "[eager]") {
  const auto message = [](std::string_view op, std::vector<NamedAttribute> given) {
    try {
      const Op made(op, given);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(message("conv2", {}), Contains("there is no op 'conv2'; did you mean 'conv2d'"));
  CHECK_THAT(message("conv2d", {{"strides", int64_t{1}}}),
             Contains("conv2d: has no attribute 'strides'; did you mean 'stride'"));
  CHECK_THAT(message("relu", {{"slope", 0.1}}), Contains("relu: has no attributes; found 'slope'"));
  CHECK_THAT(message("max_pool2d", {}), Contains("the attribute 'window' is missing"));
  CHECK_THAT(message("conv2d", {{"stride", std::string("two")}}), Contains("'stride' must be a list"));
  CHECK_THAT(message("conv2d", {{"stride", std::vector<int64_t>{1, 2, 3}}}), Contains("two integers"));
  CHECK_THAT(message("reduce", {{"kind", std::string("mena")}, {"axes", std::vector<int64_t>{0}}}),
             Contains("did you mean 'mean'"));
  CHECK_THAT(message("fill", {{"shape", std::vector<int64_t>{2}}, {"dtype", std::string("f31")}}),
             Contains("there is no dtype 'f31'"));
  CHECK_THAT(message("slice", {{"start", std::vector<int64_t>{1}}, {"size", std::vector<int64_t>{3, 4}}}),
             Contains("has 2 entries, the list before it 1"));
  CHECK_THAT(message("concat", {{"axis", int64_t{1} << 40}}), Contains("is too large"));
}
