#include "serving/protocol/datatype.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gpunn::serving {

namespace {

constexpr std::array<std::pair<DType, std::string_view>, 7> kDatatypes = {{{DType::f32, "FP32"},
                                                                           {DType::bf16, "BF16"},
                                                                           {DType::f16, "FP16"},
                                                                           {DType::f64, "FP64"},
                                                                           {DType::i32, "INT32"},
                                                                           {DType::i64, "INT64"},
                                                                           {DType::u8, "UINT8"}}};
constexpr std::array<std::string_view, 7> kOtherDatatypes = {"BOOL",   "INT8",   "INT16", "UINT16",
                                                             "UINT32", "UINT64", "BYTES"};

}  // namespace

std::string_view datatype_of(DType type) {
  const auto* const found = std::ranges::find(kDatatypes, type, &std::pair<DType, std::string_view>::first);
  return found->second;
}

std::optional<DType> dtype_of(std::string_view datatype) {
  const auto* const found = std::ranges::find(kDatatypes, datatype, &std::pair<DType, std::string_view>::second);
  if (found == kDatatypes.end()) return std::nullopt;
  return found->first;
}

std::string config_type_of(DType type) { return "TYPE_" + std::string(datatype_of(type)); }

bool is_datatype(std::string_view datatype) {
  return dtype_of(datatype) || std::ranges::find(kOtherDatatypes, datatype) != kOtherDatatypes.end();
}

}  // namespace gpunn::serving
