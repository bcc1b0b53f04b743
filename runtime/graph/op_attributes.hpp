// The attributes of ops by name: the rows of op_attrs.inc.
#pragma once

#include <gpunn/ops.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attributes.hpp"

namespace gpunn::graph {

// A member of an attribute struct of op_attrs.h, as the caller sees it.
struct AttributeField {
  eager::AttributeInfo info;
  std::string_view member;  // its name in the struct
  std::size_t offset = 0;   // in the struct, in bytes
  std::size_t bytes = 0;
  void (*write)(void* member, const eager::AttributeValue& value) = nullptr;
  std::string (*text)(const AttributeField& field, const void* member, std::size_t rank) = nullptr;
  std::vector<int32_t> only_of = {};  // ops; empty: all that have the struct
};

// The struct of an op, by name, with its members except struct_size, reserved ones and `rank`, which is the length of
// the lists.
struct AttributeTable {
  std::string_view name;
  std::size_t bytes = 0;
  std::size_t rank_offset = 0;  // of int32_t rank; 0: there is none
  std::vector<AttributeField> fields = {};
};

// Every struct that an op has, but gpunn_no_attrs.
const std::vector<AttributeTable>& attribute_tables();
// nullptr: the op has no attributes.
const AttributeTable* attribute_table(int32_t op);
// Those of the table that the op uses.
std::vector<const AttributeField*> attribute_fields(int32_t op);

// The op's struct. Throws Error(usage), with the op's name, if a name is unknown, a value is missing or of another
// kind, or lists differ in length.
Attributes attributes_of(int32_t op, std::string_view op_name, std::span<const eager::NamedAttribute> values);

// "stride 2x2, transpose_a": the attributes whose values are not their defaults.
std::string attributes_text(int32_t op, const Attributes& attributes);

}  // namespace gpunn::graph
