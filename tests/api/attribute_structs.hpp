// The attribute structs: their members with types and places, as the compiler lays them out.
#pragma once

#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpunn::testing {

struct AttributeMember {
  std::string name;
  std::string type;       // "float"
  std::size_t count = 1;  // of an array
  std::size_t offset = 0;
  bool operator==(const AttributeMember&) const = default;
};

using AttributeStruct = std::vector<AttributeMember>;

inline std::size_t size_of_type(const std::string& type) {
  static const std::map<std::string, std::size_t> sizes{{"uint32_t", 4}, {"int32_t", 4}, {"float", 4},
                                                        {"uint64_t", 8}, {"int64_t", 8}, {"double", 8}};
  const auto found = sizes.find(type);
  if (found == sizes.end()) throw std::runtime_error("attributes of type " + type + " have no known size");
  return found->second;
}

// Bytes, with the padding that aligns an array of them.
inline std::size_t size_of_struct(const AttributeStruct& members) {
  std::size_t end = 0, alignment = 1;
  for (const AttributeMember& member : members) {
    const std::size_t size = size_of_type(member.type);
    end = member.offset + member.count * size;
    alignment = std::max(alignment, size);
  }
  return (end + alignment - 1) / alignment * alignment;
}

// By name; the op's own struct is at struct_of_op.
inline const std::map<std::string, AttributeStruct>& attribute_structs() {
  static const std::map<std::string, AttributeStruct> structs = [] {
    std::map<std::string, AttributeStruct> result{{"gpunn_no_attrs", {{"struct_size", "uint32_t", 1, 0}}}};
#define GPUNN_ATTRS(name)                     \
  {                                           \
    using Struct = name;                      \
    AttributeStruct& members = result[#name]; \
    members.push_back({"struct_size", "uint32_t"});
#define GPUNN_UNNAMED(type, member) \
  members.push_back({#member, #type, sizeof(Struct::member) / sizeof(type), offsetof(Struct, member)});
#define GPUNN_ATTR(type, member, extent, kind, range, fallback, help, ops) GPUNN_UNNAMED(type, member)
#define GPUNN_ATTRS_END(name) }
#include <gpunn/op_attrs.inc>
#undef GPUNN_ATTRS
#undef GPUNN_ATTR
#undef GPUNN_UNNAMED
#undef GPUNN_ATTRS_END
    return result;
  }();
  return structs;
}

inline const std::string& struct_of_op(int32_t op) {
  static const std::map<int32_t, std::string> names{
#define GPUNN_OP(name, id, attributes, signature, summary) {id, #attributes},
#include <gpunn/op_list.inc>
#undef GPUNN_OP
  };
  return names.at(op);
}

}  // namespace gpunn::testing
