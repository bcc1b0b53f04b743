#include "serving/grpc/messages.hpp"

#include <array>
#include <string>

#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

namespace gpunn::serving {

namespace {

using Json = nlohmann::ordered_json;
using inference::InferParameter;
using inference::InferTensorContents;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// One part of an address.
std::string encoded(const std::string& text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
        c == '.') {
      result += c;
    } else {
      result += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return result;
}

Json parameter(const InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return value.bool_param();
    case InferParameter::kInt64Param:
      return value.int64_param();
    case InferParameter::kUint64Param:
      return value.uint64_param();
    case InferParameter::kDoubleParam:
      return value.double_param();
    case InferParameter::kStringParam:
      return value.string_param();
    default:
      return nullptr;
  }
}

template <class Parameters>
Json parameters_of(const Parameters& parameters) {
  Json json = Json::object();
  for (const auto& [name, value] : parameters) json[name] = parameter(value);
  return json;
}

template <class Values>
std::string packed(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()),
          static_cast<std::size_t>(values.size()) * sizeof(*values.data())};
}

template <class Values>
Json numbers(const Values& values) {
  Json json = Json::array();
  for (const auto value : values) json.push_back(value);
  return json;
}

// Values that came as numbers of the message: those of floats as bytes, since JSON has no NaN.
void add_contents(const InferTensorContents& contents, Json& input, std::string& binary) {
  const auto add_bytes = [&](const std::string& bytes) {
    input["parameters"]["binary_data_size"] = bytes.size();
    binary += bytes;
  };
  if (contents.fp32_contents_size() > 0) return add_bytes(packed(contents.fp32_contents()));
  if (contents.fp64_contents_size() > 0) return add_bytes(packed(contents.fp64_contents()));
  if (contents.bytes_contents_size() > 0) {
    input["data"] = {"bytes"};
  } else if (contents.int64_contents_size() > 0) {
    input["data"] = numbers(contents.int64_contents());
  } else if (contents.uint_contents_size() > 0) {
    input["data"] = numbers(contents.uint_contents());
  } else if (contents.uint64_contents_size() > 0) {
    input["data"] = numbers(contents.uint64_contents());
  } else if (contents.bool_contents_size() > 0) {
    input["data"] = numbers(contents.bool_contents());
  } else {
    input["data"] = numbers(contents.int_contents());
  }
}

}  // namespace

std::string model_target(const std::string& name, const std::string& version, const std::string& action) {
  return "/v2/models/" + encoded(name) + (version.empty() ? "" : "/versions/" + encoded(version)) + action;
}

InferBody infer_body(const ModelInferRequest& request) {
  InferBody result;
  std::string binary;
  const bool raw = request.raw_input_contents_size() > 0;
  if (raw && request.raw_input_contents_size() != request.inputs_size()) {
    result.problem = "expected as many raw_input_contents as inputs, " + std::to_string(request.inputs_size()) +
                     ", found " + std::to_string(request.raw_input_contents_size());
    return result;
  }
  Json document = {{"id", request.id()}, {"parameters", parameters_of(request.parameters())}};
  document["parameters"]["binary_data_output"] = true;
  Json& inputs = document["inputs"] = Json::array();
  for (int i = 0; i < request.inputs_size(); ++i) {
    const ModelInferRequest::InferInputTensor& tensor = request.inputs(i);
    Json input = {{"name", tensor.name()},
                  {"datatype", tensor.datatype()},
                  {"shape", numbers(tensor.shape())},
                  {"parameters", parameters_of(tensor.parameters())}};
    input["parameters"].erase("binary_data_size");
    if (raw) {
      input["parameters"]["binary_data_size"] = request.raw_input_contents(i).size();
      binary += request.raw_input_contents(i);
    } else {
      add_contents(tensor.contents(), input, binary);
    }
    inputs.push_back(std::move(input));
  }
  if (request.outputs_size() > 0) {
    Json& outputs = document["outputs"] = Json::array();
    for (const auto& output : request.outputs()) {
      Json one = {{"name", output.name()}, {"parameters", parameters_of(output.parameters())}};
      one["parameters"].erase("binary_data");
      outputs.push_back(std::move(one));
    }
  }
  result.body = text_of(document);
  result.header_bytes = result.body.size();
  result.body += binary;
  return result;
}

bool read_infer_answer(const Response& answer, std::size_t header_bytes, ModelInferResponse& response,
                       std::vector<SharedBytes>& tensors) {
  const std::string_view body = answer.body;
  const Json document = Json::parse(body.substr(0, header_bytes), nullptr, false);
  if (!document.is_object()) return false;
  std::string_view joined = body.substr(header_bytes);
  auto part = answer.rest.begin();
  try {
    response.set_id(document.value("id", ""));
    response.set_model_name(document.at("model_name").get<std::string>());
    response.set_model_version(document.at("model_version").get<std::string>());
    for (const Json& output : document.at("outputs")) {
      ModelInferResponse::InferOutputTensor& tensor = *response.add_outputs();
      tensor.set_name(output.at("name").get<std::string>());
      tensor.set_datatype(output.at("datatype").get<std::string>());
      for (const Json& size : output.at("shape")) tensor.add_shape(size.get<int64_t>());
      const auto bytes = output.at("parameters").at("binary_data_size").get<std::size_t>();
      if (part != answer.rest.end()) {
        if (bytes != part->bytes.size()) return false;
        tensors.push_back(*part++);
        continue;
      }
      if (bytes > joined.size()) return false;
      tensors.push_back({.memory = nullptr, .bytes = joined.substr(0, bytes)});
      joined.remove_prefix(bytes);
    }
  } catch (const Json::exception&) {
    return false;
  }
  return true;
}

bool read_json(const std::string& json, google::protobuf::Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(json, &message, options).ok();
}

std::string error_text(const std::string& json) {
  const Json document = Json::parse(json, nullptr, false);
  if (!document.is_object() || !document.contains("error") || !document["error"].is_string()) return json;
  return document["error"].get<std::string>();
}

}  // namespace gpunn::serving
