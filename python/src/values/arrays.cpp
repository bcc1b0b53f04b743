#include "values/arrays.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <string>

namespace gpunn::python {

namespace {

struct Pair {
  DType ours;
  nb::dlpack::dtype theirs;
};

constexpr nb::dlpack::dtype dlpack(nb::dlpack::dtype_code code, uint8_t bits) {
  return {static_cast<uint8_t>(code), bits, 1};
}

using Code = nb::dlpack::dtype_code;
constexpr std::array kPairs = {
    Pair{DType::f32, dlpack(Code::Float, 32)}, Pair{DType::f64, dlpack(Code::Float, 64)},
    Pair{DType::f16, dlpack(Code::Float, 16)}, Pair{DType::bf16, dlpack(Code::Bfloat, 16)},
    Pair{DType::i32, dlpack(Code::Int, 32)},   Pair{DType::i64, dlpack(Code::Int, 64)},
    Pair{DType::u8, dlpack(Code::UInt, 8)},
};

}  // namespace

DType dtype_of(nb::dlpack::dtype dtype) {
  for (const Pair& pair : kPairs) {
    if (pair.theirs == dtype) return pair.ours;
  }
  std::string known;
  for (const Pair& pair : kPairs) known += (known.empty() ? "" : ", ") + std::string(name_of(pair.ours));
  throw Error("the array's dtype (DLPack code " + std::to_string(dtype.code) + ", " + std::to_string(dtype.bits) +
                  " bits) is not one of " + known,
              ExitCode::usage);
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  for (const Pair& pair : kPairs) {
    if (pair.ours == dtype) return pair.theirs;
  }
  throw Error("no dtype of DLPack for " + std::string(name_of(dtype)));
}

}  // namespace gpunn::python
