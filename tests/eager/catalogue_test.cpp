#include <gpunn/error.hpp>
#include <gpunn/ops.h>

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
