// Every signature of op_list.inc says all that is to be known of it.
#include <gpunn/op_shapes.hpp>

#include <algorithm>
#include <set>

#include "catch.hpp"

using namespace gpunn;

namespace {

bool is_number(std::string_view size) { return size.front() >= '0' && size.front() <= '9'; }

std::set<std::string_view> sizes_of(const std::vector<ops::Pattern>& patterns) {
  std::set<std::string_view> sizes;
  for (const ops::Pattern& pattern : patterns) sizes.insert(pattern.sizes.begin(), pattern.sizes.end());
  return sizes;
}

}  // namespace

TEST_CASE("the outputs of every op follow from its signature, or from a rule") {
  CHECK(ops::all().size() >= 90);
  std::set<std::string_view> names;
  for (const auto& row : ops::all()) {
    const auto& op = row.second;
    INFO(op.name << ": " << op.text);
    CHECK(names.insert(op.name).second);
    CHECK(op.id == row.first);
    CHECK(op.attributes >= sizeof(uint32_t));
    const std::set<std::string_view> given = sizes_of(op.signature.inputs);
    const auto known = [&](std::string_view size) { return is_number(size) || given.contains(size); };
    CHECK(std::ranges::all_of(op.signature.positive, known));
    CHECK_FALSE(op.signature.outputs.empty());
    for (const ops::Pattern& output : op.signature.outputs) {
      INFO(output.name);
      CHECK(std::ranges::all_of(output.sizes, known));
      CHECK(std::ranges::all_of(output.may_alias, [](int input) { return input >= 0; }));
      // What is left out goes by an input.
      CHECK((!output.optional || output.in_place >= 0));
    }
    const bool computed = std::ranges::any_of(op.signature.outputs, &ops::Pattern::computed);
    CHECK(std::ranges::count_if(op.signature.outputs, &ops::Pattern::computed) <= 1);
    if (!computed) continue;
    // There is a rule: whatever it finds wrong with this, it is asked.
    std::vector<ops::Tensor> inputs;
    for (const ops::Pattern& input : op.signature.inputs) {
      inputs.push_back({input.dtypes.front(), std::vector<int64_t>(std::max<std::size_t>(input.sizes.size(), 2), 1)});
      if (input.sizes.empty() && !input.rest && !input.computed) inputs.back().shape.clear();
      if (input.sizes.size() == 1 && !input.rest) inputs.back().shape = {1};
    }
    CHECK_NOTHROW([&] {
      try {
        ops::outputs_of(op, nullptr, inputs);
      } catch (const ops::Misfit&) {
      }
    }());
  }
}

TEST_CASE("a signature is read whole") {
  const ops::Op& norm = ops::all().at(GPUNN_OP_BATCH_NORM);
  CHECK(norm.signature.least_inputs == 5);
  CHECK(norm.signature.most_inputs == 6);
  CHECK(norm.signature.inputs.back().dtypes == std::vector<int32_t>{GPUNN_I32});
  std::vector<int> in_place;
  for (const ops::Pattern& output : norm.signature.outputs) in_place.push_back(output.in_place);
  CHECK(in_place == std::vector<int>{-1, -1, -1, 3, 4});
  const ops::Op& add = ops::all().at(GPUNN_OP_ADD);
  CHECK(add.signature.outputs[0].may_alias == std::vector<int>{0, 1});
  const ops::Op& gather = ops::all().at(GPUNN_OP_GATHER_NORMALIZE);
  CHECK(gather.signature.inputs[0].dtypes == std::vector<int32_t>{GPUNN_U8, GPUNN_F32});
  CHECK(ops::all().at(GPUNN_OP_LAYER_NORM).signature.positive == std::vector<std::string_view>{"D"});
}
