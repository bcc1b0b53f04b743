#include "serving/protocol/infer_request.hpp"

#include <bit>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDepth = 64;     // of brackets
constexpr std::size_t kMostTensors = 256;  // of a request
constexpr std::size_t kMostDimensions = 16;

[[noreturn]] void refuse(const std::string& why) {
  throw ServiceError(400, "failed to parse the request JSON: " + why);
}

// Reads the request as it is parsed, so that a long tensor never is a tree of JSON values.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(InferRequest& request) : request_(request) {}

  bool key(string_t& name) override {
    if (skipping_ > 0) return true;
    key_ = name;
    return true;
  }

  bool start_object(std::size_t /*count*/) override {
    enter();
    if (skipping_ > 0) return skip_deeper();
    if (depth_ == 1) return true;  // the request itself
    switch (place_) {
      case Place::request:
        if (key_ == "parameters") return go(Place::request_parameters);
        break;
      case Place::inputs:
        if (request_.inputs.size() == kMostTensors) refuse("it has more than 256 inputs");
        request_.inputs.emplace_back();
        return go(Place::input);
      case Place::outputs:
        if (request_.outputs.size() == kMostTensors) refuse("it asks for more than 256 outputs");
        request_.outputs.emplace_back();
        return go(Place::output);
      case Place::input:
        if (key_ == "parameters") return go(Place::input_parameters);
        break;
      case Place::output:
        if (key_ == "parameters") return go(Place::output_parameters);
        break;
      default:
        if (place_ == Place::data || place_ == Place::shape) refuse("'" + key_ + "' of an input holds an object");
        break;
    }
    return skip_deeper();
  }

  bool end_object() override {
    --depth_;
    if (leave_skipped()) return true;
    switch (place_) {
      case Place::request_parameters:
        return go(Place::request);
      case Place::input:
        return go(Place::inputs);
      case Place::output:
        return go(Place::outputs);
      case Place::input_parameters:
        return go(Place::input);
      case Place::output_parameters:
        return go(Place::output);
      default:
        return true;
    }
  }

  bool start_array(std::size_t /*count*/) override {
    enter();
    if (depth_ == 1) refuse("expected an object, found an array");
    if (skipping_ > 0) return skip_deeper();
    switch (place_) {
      case Place::request:
        if (key_ == "inputs") return go(Place::inputs);
        if (key_ == "outputs") return go(Place::outputs);
        break;
      case Place::input:
        if (key_ == "shape") {
          input().has_shape = true;
          return go(Place::shape);
        }
        if (key_ == "data") {
          input().has_data = true;
          data_depth_ = 1;
          return go(Place::data);
        }
        break;
      case Place::data:
        ++data_depth_;
        return true;
      case Place::inputs:
      case Place::outputs:
      case Place::shape:
        refuse("an array is where it can't be");
      default:
        break;
    }
    return skip_deeper();
  }

  bool end_array() override {
    --depth_;
    if (leave_skipped()) return true;
    switch (place_) {
      case Place::inputs:
      case Place::outputs:
        return go(Place::request);
      case Place::shape:
        return go(Place::input);
      case Place::data:
        return --data_depth_ > 0 || go(Place::input);
      default:
        return true;
    }
  }

  bool null() override { return other("null"); }
  bool binary(binary_t& /*value*/) override { return other("binary"); }

  bool boolean(bool value) override {
    require_object();
    if (skipping_ > 0) return true;
    if (place_ == Place::data) return number(value ? 1 : 0);
    if (place_ == Place::request_parameters && key_ == "binary_data_output") request_.binary_outputs = value;
    if (place_ == Place::output_parameters && key_ == "binary_data") output().binary = value;
    return true;
  }

  bool number_integer(number_integer_t value) override {
    require_object();
    return skipping_ > 0 || number(value);
  }

  bool number_unsigned(number_unsigned_t value) override {
    require_object();
    if (skipping_ > 0) return true;
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return number_float(static_cast<double>(value), {});
    }
    return number(static_cast<int64_t>(value));
  }

  bool number_float(number_float_t value, const string_t& /*text*/) override {
    require_object();
    if (skipping_ > 0) return true;
    if (place_ == Place::shape) refuse("a dimension is no integer");
    if (place_ != Place::data) return true;
    InferInput& tensor = input();
    if (!std::exchange(tensor.floating, true)) {
      for (uint64_t& bits : tensor.numbers) {
        bits = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(bits)));
      }
    }
    tensor.numbers.push_back(std::bit_cast<uint64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    require_object();
    if (skipping_ > 0) return true;
    switch (place_) {
      case Place::request:
        if (key_ == "id") request_.id = std::move(value);
        break;
      case Place::input:
        if (key_ == "name") {
          input().name = std::move(value);
        } else if (key_ == "datatype") {
          input().datatype = std::move(value);
        }
        break;
      case Place::output:
        if (key_ == "name") output().name = std::move(value);
        break;
      case Place::input_parameters:
        if (key_ == "shared_memory_region") input().in_shared_memory = true;
        break;
      case Place::output_parameters:
        if (key_ == "shared_memory_region") output().in_shared_memory = true;
        break;
      case Place::data:
      case Place::shape:
        refuse("input '" + input().name + "' holds text, and no model takes any");
      default:
        break;
    }
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const Json::exception& error) override {
    refuse(error.what());
  }

 private:
  enum class Place {
    request,
    request_parameters,
    inputs,
    input,
    input_parameters,
    shape,
    data,
    outputs,
    output,
    output_parameters
  };

  InferInput& input() { return request_.inputs.back(); }
  InferOutput& output() { return request_.outputs.back(); }

  bool go(Place place) {
    place_ = place;
    key_.clear();
    return true;
  }
  void enter() {
    if (++depth_ > kMostDepth) refuse("more than 64 brackets are within each other");
  }
  // What the protocol does not know is passed over.
  bool skip_deeper() {
    ++skipping_;
    return true;
  }
  bool leave_skipped() {
    if (skipping_ == 0) return false;
    --skipping_;
    return true;
  }
  void require_object() const {
    if (depth_ == 0) refuse("expected an object");
  }
  bool other(const char* kind) {
    require_object();
    if (skipping_ == 0 && (place_ == Place::data || place_ == Place::shape)) {
      refuse("input '" + input().name + "' holds " + kind + "; expected numbers");
    }
    return true;
  }

  bool number(int64_t value) {
    switch (place_) {
      case Place::data:
        if (input().floating) return number_float(static_cast<double>(value), {});
        input().numbers.push_back(static_cast<uint64_t>(value));
        return true;
      case Place::shape:
        if (input().shape.size() == kMostDimensions) refuse("a shape has more than 16 dimensions");
        input().shape.push_back(value);
        return true;
      case Place::input_parameters:
        if (key_ == "binary_data_size") {
          if (value < 0) refuse("binary_data_size is negative");
          input().binary_bytes = static_cast<uint64_t>(value);
        }
        return true;
      case Place::output_parameters:
        if (key_ == "classification") {
          if (value < 0) refuse("'classification' is negative");
          output().classes = value;
        }
        return true;
      case Place::request_parameters:
        if (key_ == "timeout" && value > 0) request_.timeout_us = static_cast<uint64_t>(value);
        return true;
      default:
        return true;
    }
  }

  InferRequest& request_;
  Place place_ = Place::request;
  std::string key_;
  std::size_t depth_ = 0, skipping_ = 0, data_depth_ = 0;
};

// Gives each input its part of what follows the JSON.
void share_out(std::string_view rest, InferRequest& request) {
  std::size_t used = 0;
  for (InferInput& input : request.inputs) {
    if (!input.binary_bytes) continue;
    if (input.has_data) {
      throw ServiceError(400, "input '" + input.name + "' has 'data' and 'binary_data_size'; expected one of them");
    }
    if (*input.binary_bytes > rest.size() - used) {
      throw ServiceError(400, "unexpected size for input '" + input.name + "': binary_data_size is " +
                                  std::to_string(*input.binary_bytes) + ", and the body has " +
                                  std::to_string(rest.size() - used) + " bytes left for it");
    }
    input.binary = rest.substr(used, static_cast<std::size_t>(*input.binary_bytes));
    used += input.binary.size();
  }
  if (used != rest.size()) {
    throw ServiceError(400, "unexpected additional input data: " + std::to_string(rest.size() - used) +
                                " bytes of the body belong to no input");
  }
}

}  // namespace

InferRequest parse_infer_request(std::string_view body, std::optional<std::size_t> header_bytes) {
  if (header_bytes && *header_bytes > body.size()) {
    throw ServiceError(400, "Inference-Header-Content-Length is " + std::to_string(*header_bytes) +
                                ", and the body has " + std::to_string(body.size()) + " bytes");
  }
  InferRequest request;
  const std::string_view header = body.substr(0, header_bytes.value_or(body.size()));
  Reader reader(request);
  if (!Json::sax_parse(header.begin(), header.end(), &reader)) refuse("it ends too soon");
  share_out(body.substr(header.size()), request);
  return request;
}

}  // namespace gpunn::serving
