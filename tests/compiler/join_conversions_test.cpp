#include "compiler/join_conversions.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <vector>

#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

constexpr uint64_t kAlignment = 64;

// Parameters that lie one behind the other in a flat array, each with a copy in half precision.
struct Weights {
  Graph g;
  ValueId flat;
  std::vector<ValueId> halves = {};

  explicit Weights(int64_t elements) : flat(g.add_value("parameters", {DType::f32, {elements}}, Storage::parameters)) {}

  ValueId add(const Shape& shape, int64_t element, DType type = DType::bf16) {
    const ValueId view = g.add_view("w", flat, {DType::f32, shape}, element * 4);
    halves.push_back(g.add_value("w.half", {type, shape}, Storage::arena));
    g.add_into(GPUNN_OP_COPY, "w", {}, {view}, {halves.back()});
    return halves.back();
  }
  void read(ValueId x) { g.add1(GPUNN_OP_SCALE, "reads", Attributes::of(gpunn_scale_attrs{0, 1.0F}), {x}); }
  std::vector<const Node*> copies() const {
    std::vector<const Node*> found;
    for (const Node& node : g.nodes()) {
      if (node.op == GPUNN_OP_COPY) found.push_back(&node);
    }
    return found;
  }
};

}  // namespace

TEST_CASE("neighbouring weights are converted by one copy, in front of the first reader") {
  Weights w(512);
  w.read(w.add({8, 4, 1, 1}, 0));
  w.read(w.add({10, 10}, 64));
  w.read(w.add({64}, 192));
  join_conversions(w.g, kAlignment);
  const auto copies = w.copies();
  REQUIRE(copies.size() == 1);
  CHECK(&w.g.nodes().front() == copies[0]);
  CHECK(w.g.value(copies[0]->inputs[0]).type == TensorType{DType::f32, {256}});
  CHECK(w.g.value(copies[0]->outputs[0]).type == TensorType{DType::bf16, {256}});
  const std::vector<int64_t> offsets{0, 128, 384};
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    CHECK(w.g.root(w.halves[i]) == copies[0]->outputs[0]);
    CHECK(w.g.root_offset(w.halves[i]) == offsets[i]);
  }
}

TEST_CASE("a weight that is converted twice is converted once") {
  Weights w(128);
  w.read(w.add({8, 8}, 64));
  w.read(w.add({8, 8}, 64));
  join_conversions(w.g, kAlignment);
  REQUIRE(w.copies().size() == 1);
  CHECK(w.g.root_offset(w.halves[0]) == 0);
  CHECK(w.g.root_offset(w.halves[1]) == 0);
  CHECK(w.g.root_offset(w.copies()[0]->inputs[0]) == 256);
}

TEST_CASE("copies that must stay alone do") {
  Weights w(int64_t{1} << 20);
  w.add({8, 8}, 0);
  const std::string why = GENERATE("layouts", "alignment", "far", "type", "written before", "written twice");
  if (why == "layouts") w.add({4, 4, 3, 3}, 64);
  if (why == "alignment") w.add({8, 8}, 80);
  if (why == "far") w.add({8, 8}, (int64_t{1} << 19));
  if (why == "type") w.add({8, 8}, 64, DType::f16);
  if (why == "written before") {
    w.g.add_into(GPUNN_OP_SCALE, "update", Attributes::of(gpunn_scale_attrs{0, 2.0F}), {w.flat}, {w.flat});
    w.add({8, 8}, 64);
  }
  if (why == "written twice") {
    const ValueId half = w.add({8, 8}, 64);
    w.g.add_into(GPUNN_OP_SCALE, "again", Attributes::of(gpunn_scale_attrs{0, 2.0F}), {half}, {half});
  }
  INFO(why);
  join_conversions(w.g, kAlignment);
  CHECK(w.copies().size() == 2);
  for (const ValueId half : w.halves) CHECK(w.g.value(half).view_of == kNoValue);
}

TEST_CASE("a weight between others that stays alone is converted with them, if it is small") {
  Weights w(int64_t{1} << 20);
  w.add({8, 8}, 0);
  w.add({4, 4, 3, 3}, 64);
  w.add({8, 8}, 256);
  w.add({8, 8}, int64_t{1} << 19);
  w.add({8, 8}, (int64_t{1} << 19) + 64);
  join_conversions(w.g, kAlignment);
  CHECK(w.copies().size() == 3);
  CHECK(w.g.value(w.halves[1]).view_of == kNoValue);
  CHECK(w.g.root(w.halves[0]) == w.g.root(w.halves[2]));
  CHECK(w.g.root(w.halves[3]) == w.g.root(w.halves[4]));
  CHECK(w.g.root(w.halves[0]) != w.g.root(w.halves[3]));
}
