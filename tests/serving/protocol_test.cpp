// Bodies of requests and answers, byte by byte.
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <catch.hpp>

#include "serving/models/answer_memory.hpp"
#include "serving/protocol/infer_request.hpp"
#include "serving/protocol/infer_response.hpp"
#include "serving/protocol/service_error.hpp"
#include "serving/protocol/target.hpp"

using gpunn::DType;
using gpunn::Shape;
using namespace gpunn::serving;

namespace {

InferRequest parse(const std::string& json) { return parse_infer_request(json, {}); }

int status_of(const std::string& body, std::optional<std::size_t> header = {}) {
  try {
    parse_infer_request(body, header);
  } catch (const ServiceError& error) {
    return error.status();
  }
  return 200;
}

template <class T>
std::vector<T> values_of(const InferRequest& request, DType type) {
  std::string converted;
  const std::string_view bytes = packed_values(request.inputs.at(0), type, converted);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string with_data(const std::string& shape, const std::string& data, const std::string& type = "FP32") {
  return R"({"inputs":[{"name":"x","datatype":")" + type + R"(","shape":)" + shape + R"(,"data":)" + data + "}]}";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("a request in JSON has its id, parameters, inputs and outputs, whatever their order") {
  const InferRequest request = parse(
      R"({"outputs":[{"parameters":{"classification":3,"binary_data":false},"name":"p"},{"name":"q"}],)"
      R"("inputs":[{"data":[[1,2],[3,4.5]],"shape":[2,2],"parameters":{"unknown":{"a":[1]}},"datatype":"FP32","name":"x"}],)"
      R"("parameters":{"binary_data_output":true,"timeout":250,"sequence_id":"s"},"unknown":[{"inputs":1}],"id":"42"})");
  CHECK(request.id == "42");
  CHECK(request.binary_outputs);
  CHECK(request.timeout_us == 250);
  REQUIRE(request.inputs.size() == 1);
  CHECK(request.inputs[0].name == "x");
  CHECK(request.inputs[0].datatype == "FP32");
  CHECK(request.inputs[0].shape == Shape{2, 2});
  CHECK(values_of<float>(request, DType::f32) == std::vector<float>{1, 2, 3, 4.5F});
  REQUIRE(request.outputs.size() == 2);
  CHECK(request.outputs[0].name == "p");
  CHECK(request.outputs[0].classes == 3);
  CHECK(request.outputs[0].binary == false);
  CHECK_FALSE(request.outputs[1].binary.has_value());
}

TEST_CASE("binary tensors follow the JSON, in the order of the inputs that announce them") {
  const std::string json =
      R"({"inputs":[{"name":"a","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},)"
      R"({"name":"b","datatype":"UINT8","shape":[1],"data":[7]},)"
      R"({"name":"c","datatype":"UINT8","shape":[3],"parameters":{"binary_data_size":3}}]})";
  const std::string body = json + bytes_of<float>({1.5F, -2}) + "xyz";
  const InferRequest request = parse_infer_request(body, json.size());
  CHECK(values_of<float>(request, DType::f32) == std::vector<float>{1.5F, -2});
  CHECK(request.inputs.at(2).binary == "xyz");
  SECTION("with bytes too few, too many, or announced in vain") {
    CHECK(status_of(body.substr(0, body.size() - 1), json.size()) == 400);
    CHECK(status_of(body + "!", json.size()) == 400);
    CHECK(status_of(body, body.size() + 1) == 400);
    CHECK(status_of(json, {}) == 400);
    CHECK(status_of(body, json.size() - 1) == 400);
  }
}

TEST_CASE("numbers of JSON become the type of the input, or an error") {
  CHECK(values_of<uint8_t>(parse(with_data("[3]", "[0, 255, 7.0]", "UINT8")), DType::u8) ==
        std::vector<uint8_t>{0, 255, 7});
  CHECK(values_of<int64_t>(parse(with_data("[1]", "[9007199254740993]", "INT64")), DType::i64) ==
        std::vector<int64_t>{9007199254740993});
  CHECK(values_of<float>(parse(with_data("[3]", "[1, 1e40, true]")), DType::f32) ==
        std::vector<float>{1, std::numeric_limits<float>::infinity(), 1});
  for (const char* wrong : {"[256]", "[-1]", "[0.5]", "[1e300]", "[18446744073709551615]"}) {
    std::string converted;
    const InferRequest request = parse(with_data("[1]", wrong, "UINT8"));
    CHECK_THROWS_WITH(packed_values(request.inputs.at(0), DType::u8, converted), Contains("'x'") && Contains("UINT8"));
  }
}

TEST_CASE("a shape that does not fit the values is refused without memory for it") {
  std::string converted;
  for (const char* shape : {"[3]", "[-2]", "[4611686018427387904, 4]", "[9223372036854775807, 9223372036854775807]"}) {
    const InferRequest request = parse(with_data(shape, "[1, 2]"));
    CHECK_THROWS_AS(packed_values(request.inputs.at(0), DType::f32, converted), ServiceError);
  }
  CHECK(converted.empty());
}

TEST_CASE("what is no request is refused with 400") {
  for (const std::string wrong :
       {"", "[]", "7", "null", "\"text\"", "{", "{]", R"({"inputs":[[]]})", R"({"inputs":[{"shape":[[1]]}]})",
        R"({"inputs":[{"shape":[1.5]}]})", R"({"inputs":[{"name":"x","data":["text"]}]})",
        R"({"inputs":[{"data":[{}]}]})", R"({"inputs":[{"data":[null]}]})", R"({"inputs":[{"data":[NaN]}]})",
        R"({"inputs":[{"shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]})",
        R"({"outputs":[{"parameters":{"classification":-1}}]})",
        R"({"inputs":[{"parameters":{"binary_data_size":-1}}]})",
        R"({"inputs":[{"parameters":{"binary_data_size":18446744073709551615}}]})"}) {
    INFO(wrong);
    const bool passes = wrong.find("18446744073709551615") != std::string::npos;  // no integer, and so not known
    CHECK(status_of(wrong) == (passes ? 200 : 400));
  }
  const std::string deep(100'000, '[');
  CHECK(status_of(R"({"inputs":[{"data":)" + deep) == 400);
  CHECK(status_of(R"({"other":)" + deep) == 400);
}

TEST_CASE("an answer has its tensors as JSON or behind it") {
  const std::string values = bytes_of<float>({0.1F, 0.7F, 0.2F, std::numeric_limits<float>::quiet_NaN(), 1, 0});
  const std::vector<std::string> labels = {"cat", "a \"dog\"", ""};
  InferAnswer answer{.model = "m", .version = "2", .id = "a\"b", .outputs = {}};
  OutputTensor output{.name = "p", .dtype = DType::f32, .shape = {2, 3}, .values = values, .labels = labels};
  SECTION("as numbers; what is not finite is null") {
    answer.outputs = {output};
    const EncodedAnswer encoded = encode_infer_answer(answer);
    CHECK(encoded.body ==
          R"({"id":"a\"b","model_name":"m","model_version":"2","outputs":[{"name":"p","datatype":"FP32","shape":[2,3],)"
          R"("data":[0.1,0.7,0.2,null,1,0]}]})");
    CHECK_FALSE(encoded.has_binary);
  }
  SECTION("as bytes") {
    output.binary = true;
    answer.outputs = {output, output};
    const EncodedAnswer encoded = encode_infer_answer(answer);
    CHECK(encoded.has_binary);
    CHECK(encoded.body.substr(encoded.header_bytes) == values + values);
    CHECK_THAT(encoded.body.substr(0, encoded.header_bytes), Contains(R"("parameters":{"binary_data_size":24})"));
  }
  SECTION("large ones in the memory that they have") {
    const auto large = std::make_shared<const std::string>(std::size_t{40'000}, '\3');
    output.shape = {2, 5'000};
    output.values = *large;
    output.memory = large;
    output.binary = true;
    answer.outputs = {output, output};
    const EncodedAnswer encoded = encode_infer_answer(answer);
    CHECK(encoded.body.size() == encoded.header_bytes);
    REQUIRE(encoded.rest.size() == 2);
    CHECK(encoded.rest[1].bytes.data() == large->data());
    CHECK(encoded.rest[1].bytes.size() == large->size());
    CHECK(large.use_count() > 2);
  }
  SECTION("as classes; NaN comes last") {
    output.classes = 2;
    answer.outputs = {output};
    CHECK_THAT(encode_infer_answer(answer).body,
               Contains(R"("datatype":"BYTES","shape":[2,2],)"
                        R"("data":["0.700000:1:a \"dog\"","0.200000:2","1.000000:1:a \"dog\"","0.000000:2"]})"));
    answer.outputs[0].classes = 99;
    CHECK_THAT(encode_infer_answer(answer).body, Contains(R"("shape":[2,3])"));
  }
  SECTION("as classes in bytes: a length of 4 bytes before each") {
    output.classes = 1;
    output.binary = true;
    answer.outputs = {output};
    const EncodedAnswer encoded = encode_infer_answer(answer);
    CHECK(encoded.body.substr(encoded.header_bytes) == std::string("\x12\0\0\0", 4) + "0.700000:1:a \"dog\"" +
                                                           std::string("\x12\0\0\0", 4) + "1.000000:1:a \"dog\"");
  }
}

TEST_CASE("large blocks of answers are used again, by answers of about their size") {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  std::shared_ptr<char[]> kept;
  {
    AnswerMemory memory;
    std::shared_ptr<char[]> first = memory.take(kLarge), other = memory.take(kLarge);
    const char* const address = first.get();
    CHECK(other.get() != address);
    first.reset();
    CHECK(memory.take(kLarge / 8).get() != address);
    first = memory.take(kLarge - 100);
    CHECK(first.get() == address);
    std::memset(first.get(), 1, kLarge - 100);
    CHECK(memory.take(10) != nullptr);
    kept = std::move(first);
  }
  kept[0] = 2;  // its memory outlives what it came from
}

TEST_CASE("an address is parts and parameters") {
  const Target target = parse_target("/v2//models/a%20b%2Fc?top=3&name=x+y&flag#rest");
  CHECK(target.path == std::vector<std::string>{"v2", "models", "a b/c"});
  CHECK(target.value("top") == "3");
  CHECK(target.value("name") == "x y");
  CHECK(target.value("flag").empty());
  CHECK(target.value("none").empty());
  for (const char* wrong : {"/%", "/%1", "/%zz", "/a?b=%", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"}) {
    CHECK_THROWS_AS(parse_target(wrong), ServiceError);
  }
}
