// Every number of ops.h and op_attrs.h that a plugin already built relies on. op_layout.txt has what is pinned: an op
// keeps its id and struct, a struct its members, and may only grow at its end. Ops that are newer than the file are
// free to change; `test_api "[.pin]"` pins them, which a release does.
#include <gpunn/ops.h>

#include <fstream>
#include <sstream>

#include "api/attribute_structs.hpp"
#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

const std::string kPinned = std::string(GPUNN_SOURCE_DIR) + "/tests/api/op_layout.txt";

std::string member_text(const AttributeMember& member) {
  return member.name + " " + member.type + " " + std::to_string(member.count) + " " + std::to_string(member.offset);
}

}  // namespace

TEST_CASE("ops keep their ids and attribute structs", "[api]") {
  std::ifstream file(kPinned);
  std::size_t pinned = 0;
  for (std::string kind, name; file >> kind >> name;) {
    INFO(kind << " " << name);
    if (kind == "op") {
      int32_t id = 0;
      std::string attributes;
      file >> id >> attributes;
      REQUIRE(ops::all().contains(id));
      CHECK(ops::all().at(id).name == name);
      CHECK(struct_of_op(id) == attributes);
      ++pinned;
      continue;
    }
    REQUIRE(kind == "struct");
    std::size_t members = 0;
    file >> members;
    const AttributeStruct& found = attribute_structs().at(name);
    REQUIRE(found.size() >= members);
    for (std::size_t i = 0; i < members; ++i) {
      AttributeMember member;
      file >> member.name >> member.type >> member.count >> member.offset;
      CHECK(member_text(found[i]) == member_text(member));
    }
  }
  CHECK(file.eof());
  CHECK(pinned >= 108);
}

TEST_CASE("members lie where the header's text says that they do", "[api]") {
  for (const auto& [id, op] : ops::all()) {
    INFO(op.name);
    const AttributeStruct& members = attribute_structs().at(struct_of_op(id));
    CHECK(members.front() == AttributeMember{"struct_size", "uint32_t", 1, 0});
    CHECK(size_of_struct(members) == op.attributes);
  }
  // Of each kind of member one, as the compiler places it.
  CHECK(offsetof(gpunn_fill_attrs, dim) == 16);
  CHECK(offsetof(gpunn_fill_attrs, value) == 80);
  CHECK(offsetof(gpunn_conv2d_attrs, filter_size) == 44);
  CHECK(offsetof(gpunn_random_affine_attrs, seed) == 24);
  const AttributeStruct& fill = attribute_structs().at("gpunn_fill_attrs");
  CHECK(member_text(fill[4]) == "dim int64_t 8 16");
  CHECK(member_text(fill[5]) == "value double 1 80");
  CHECK(member_text(attribute_structs().at("gpunn_conv2d_attrs")[7]) == "filter_size int32_t 2 44");
  CHECK(member_text(attribute_structs().at("gpunn_random_affine_attrs")[5]) == "seed uint64_t 1 24");
}

TEST_CASE("values of attributes", "[api]") {
  CHECK(GPUNN_ACTIVATION_NONE == 0);
  CHECK(GPUNN_ACTIVATION_RELU == 1);
  CHECK(GPUNN_UPSAMPLE_NEAREST == 0);
  CHECK(GPUNN_UPSAMPLE_BILINEAR == 1);
  CHECK(GPUNN_REDUCE_SUM == 0);
  CHECK(GPUNN_REDUCE_MEAN == 1);
  CHECK(GPUNN_REDUCE_MAX == 2);
}

TEST_CASE("pin the ops and structs as they are", "[.pin]") {
  std::ofstream file(kPinned);
  for (const auto& [id, op] : ops::all()) file << "op " << op.name << " " << id << " " << struct_of_op(id) << "\n";
  for (const auto& [name, members] : attribute_structs()) {
    file << "struct " << name << " " << members.size() << "\n";
    for (const AttributeMember& member : members) file << "  " << member_text(member) << "\n";
  }
}
