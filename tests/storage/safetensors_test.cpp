// Files of weights in the safetensors format: written, read, and refused.
#include "storage/safetensors.hpp"

#include <gpunn/error.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "catch.hpp"
#include "checkpoints.hpp"
#include "common/files.hpp"

using namespace storage_test;
using gpunn::DType;
using gpunn::Error;
using gpunn::ExitCode;
using gpunn::storage::parse_safetensors;
using gpunn::storage::Safetensors;
using gpunn::storage::StoredTensor;

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + data;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<float> floats(const StoredTensor& tensor) {
  std::vector<float> values(tensor.values.size() / sizeof(float));
  std::memcpy(values.data(), tensor.values.data(), tensor.values.size());
  return values;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string error_of(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "w");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what is saved as safetensors is read again") {
  const Folder folder;
  Safetensors content;
  content.metadata = {{"format", "pt"}, {"model", "m"}};
  StoredTensor weight;
  weight.name = "conv1.weight";
  weight.type = {DType::f32, {2, 1, 3}};
  const std::vector<float> values = {1, -2, 0.5F, std::numeric_limits<float>::infinity(), 5, 6};
  weight.values.resize(24);
  std::memcpy(weight.values.data(), values.data(), 24);
  StoredTensor empty;
  empty.name = "none";
  empty.type = {DType::i64, {0, 7}};
  StoredTensor scalar;
  scalar.name = "steps";
  scalar.type = {DType::i64, {}};
  scalar.values.resize(8, std::byte{3});
  content.tensors = {weight, empty, scalar};
  gpunn::storage::save_safetensors(folder / "w.safetensors", content);
  const std::string bytes = gpunn::read_text(folder / "w.safetensors");
  CHECK((8 + static_cast<unsigned char>(bytes[0]) + 256 * static_cast<unsigned char>(bytes[1])) % 8 == 0);

  const Safetensors read = gpunn::storage::load_safetensors(folder / "w.safetensors");
  CHECK(read.metadata == content.metadata);
  REQUIRE(read.tensors.size() == 3);
  CHECK(read.tensors[0].name == "conv1.weight");
  CHECK(read.tensors[0].type == weight.type);
  CHECK(floats(read.tensors[0]) == values);
  for (const StoredTensor& tensor : read.tensors) {
    const StoredTensor& given = tensor.name == "none" ? empty : tensor.name == "steps" ? scalar : weight;
    CHECK(tensor.type == given.type);
    CHECK(tensor.values == given.values);
  }
}

TEST_CASE("smaller and larger numbers become f32") {
  const std::string header = "{" + entry("h", "F16", "[7]", 0, 14) + "," + entry("b", "BF16", "[3]", 14, 20) + "," +
                             entry("d", "F64", "[2]", 20, 36) + "}";
  const std::string data = bytes_of<uint16_t>({0x3C00, 0xC000, 0x0001, 0x7BFF, 0x7C00, 0x8000, 0x3555}) +
                           bytes_of<uint16_t>({0x3F80, 0xC2F7, 0x7F80}) + bytes_of<double>({0.1, -1e300});
  const Safetensors read = parse_safetensors(file_of(header, data), "w");
  REQUIRE(read.tensors.size() == 3);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> half = floats(read.tensors[0]);
  CHECK(half == std::vector<float>{1, -2, std::ldexp(1.0F, -24), 65504, infinity, -0.0F, 0.333251953125F});
  CHECK(std::signbit(half[5]));
  CHECK(floats(read.tensors[1]) == std::vector<float>{1, -123.5F, infinity});
  CHECK(floats(read.tensors[2]) == std::vector<float>{0.1F, -infinity});
  CHECK(read.tensors[0].type == gpunn::TensorType{DType::f32, {7}});
}

TEST_CASE("files that lie are refused, with the reason") {
  const std::string a = entry("a", "F32", "[2]", 0, 8);
  CHECK(error_of(file_of("{" + a + "}", std::string(8, 'x'))).empty());
  CHECK_THAT(error_of("abc"), Contains("w: not a sound safetensors file: it has 3 bytes"));
  CHECK_THAT(error_of(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}"), Contains("its header claims"));
  CHECK_THAT(error_of(std::string("\x03\0\0\0\0\0\0\0", 8) + "{}"), Contains("its header claims 3 bytes"));
  CHECK_THAT(error_of(file_of("{" + a, "")), Contains("its header is not JSON"));
  CHECK_THAT(error_of(file_of("[]", "")), Contains("not a JSON object"));
  CHECK_THAT(error_of(file_of(std::string(1 << 20, '['), "")), Contains("its header is not JSON"));
  CHECK_THAT(error_of(file_of("{\"a\":[[[[[[1]]]]]]}", "")), Contains("the tensor 'a'"));
  CHECK_THAT(error_of(file_of("{" + a + "}", "1234567")), Contains("'a' lies outside of the 7 bytes"));
  CHECK_THAT(error_of(file_of("{" + a + "}", "123456789")), Contains("has 9 bytes of values, its tensors 8"));
  CHECK_THAT(error_of(file_of("{" + a + "," + entry("b", "U8", "[2]", 7, 9) + "}", "123456789")),
             Contains("'b' begin at byte 7, where those before end at 8"));
  CHECK_THAT(error_of(file_of("{" + a + "," + entry("b", "U8", "[1]", 9, 10) + "}", "1234567890")),
             Contains("neither overlap nor leave a gap"));
  CHECK_THAT(error_of(file_of("{" + a + "," + a + "}", "12345678")), Contains("has the name 'a' twice"));
  CHECK_THAT(error_of(file_of("{" + entry("a", "F32", "[3]", 0, 8) + "}", "12345678")), Contains("takes 12"));
  CHECK_THAT(error_of(file_of("{" + entry("a", "F32", "[4294967296,4294967296,4]", 0, 0) + "}", "")),
             Contains("too large"));
  CHECK_THAT(error_of(file_of("{" + entry("a", "F32", "[-1]", 0, 8) + "}", "12345678")), Contains("no size"));
  CHECK_THAT(error_of(file_of("{" + entry("a", "F32", "[1e1]", 0, 8) + "}", "12345678")), Contains("no size"));
  CHECK_THAT(error_of(file_of("{" + entry("a", "F8_E4M3", "[8]", 0, 8) + "}", "12345678")),
             Contains("of type 'F8_E4M3'; known: F32"));
  CHECK_THAT(error_of(file_of("{" + entry("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) + "}", "1234")),
             Contains("more than 8 dimensions"));
  CHECK_THAT(error_of(file_of("{\"a\":{\"dtype\":3,\"shape\":[],\"data_offsets\":[0,4]}}", "1234")), Contains("needs"));
  CHECK_THAT(error_of(file_of("{\"__metadata__\":{\"a\":1}}", "")), Contains("the metadata 'a' is not a text"));
}

TEST_CASE("a file that is not there") {
  try {
    gpunn::storage::load_safetensors("/no/such/file");
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::missing);
  }
}

TEST_CASE("damaged safetensors give tensors or an Error") {
  const std::string sound =
      file_of("{\"__metadata__\":{\"format\":\"pt\"}," + entry("conv.weight", "F32", "[2,3]", 0, 24) + "," +
                  entry("conv.bias", "F16", "[4]", 24, 32) + "}",
              std::string(32, 'x'));
  std::mt19937 random(11);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = sound;
    for (std::size_t wounds = 1 + below(3); wounds > 0; --wounds) {
      const std::size_t at = below(bytes.size());
      if (below(3) == 0) {
        bytes.erase(at, 1 + below(4));
      } else {
        bytes[at] = below(2) == 0 ? static_cast<char>(below(256)) : "0123456789[]{},:\""[below(17)];
      }
    }
    good += error_of(bytes).empty() ? 1 : 0;
  }
  CHECK(good > 100);
  CHECK(good < 20000);
}
