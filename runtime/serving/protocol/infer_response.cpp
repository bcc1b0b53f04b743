#include "serving/protocol/infer_response.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "serving/protocol/datatype.hpp"

namespace gpunn::serving {

namespace {

constexpr std::size_t kMostJoined = std::size_t{16} << 10;  // bytes of tensors that are copied behind the JSON

template <class T>
T value_at(std::string_view values, std::size_t index) {
  T value{};
  std::memcpy(&value, values.data() + index * sizeof value, sizeof value);
  return value;
}

template <class T>
void append_value(std::string& json, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {
      json += "null";
      return;
    }
    fmt::format_to(std::back_inserter(json), "{}", value);
  } else {
    fmt::format_to(std::back_inserter(json), "{}", static_cast<int64_t>(value));
  }
}

void append_numbers(std::string& json, const OutputTensor& output) {
  with_type(output.dtype, [&]<class T>(T /*type*/) {
    const std::size_t count = output.values.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) json += ',';
      append_value(json, value_at<T>(output.values, i));
    }
  });
}

// "0.983000:7:seven" of the most probable classes of each row, as the classification extension has them.
std::vector<std::string> class_texts(const OutputTensor& output, std::size_t& of_row) {
  const std::size_t rows = output.shape.empty() ? 1 : static_cast<std::size_t>(output.shape.front());
  std::vector<std::string> texts;
  of_row = 0;
  with_type(output.dtype, [&]<class T>(T /*type*/) {
    const std::size_t columns = rows == 0 ? 0 : output.values.size() / sizeof(T) / rows;
    of_row = std::min(columns, static_cast<std::size_t>(output.classes));
    std::vector<std::size_t> order(columns);
    for (std::size_t row = 0; row < rows; ++row) {
      std::iota(order.begin(), order.end(), std::size_t{0});
      // NaN is among the least, or there would be no order.
      const auto value = [&](std::size_t i) {
        const auto one = static_cast<double>(value_at<T>(output.values, row * columns + i));
        return std::isnan(one) ? -std::numeric_limits<double>::infinity() : one;
      };
      const auto before = [&](std::size_t a, std::size_t b) {
        const double x = value(a), y = value(b);
        return x != y ? x > y : a < b;
      };
      std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(of_row), order.end(), before);
      for (std::size_t i = 0; i < of_row; ++i) {
        std::string text = fmt::format("{:.6f}:{}", value(order[i]), order[i]);
        if (order[i] < output.labels.size() && !output.labels[order[i]].empty()) text += ":" + output.labels[order[i]];
        texts.push_back(std::move(text));
      }
    }
  });
  return texts;
}

void append_shape(std::string& json, const Shape& shape) {
  json += "\"shape\":[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    fmt::format_to(std::back_inserter(json), "{}{}", i > 0 ? "," : "", shape[i]);
  }
  json += ']';
}

void append_length(std::string& bytes, std::size_t length) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((length >> shift) & 0xFFU);
}

void append_binary_size(std::string& json, std::size_t bytes) {
  fmt::format_to(std::back_inserter(json), ",\"parameters\":{{\"binary_data_size\":{}}}", bytes);
}

// Where no memory is shared, the answer gets its own.
SharedBytes shared(const OutputTensor& output) {
  if (output.memory != nullptr) return {output.memory, output.values};
  auto own = std::make_shared<const std::string>(output.values);
  const std::string_view view = *own;
  return {std::move(own), view};
}

void append_output(std::string& json, std::vector<SharedBytes>& binary, const OutputTensor& output) {
  json += "{\"name\":";
  append_json_string(json, output.name);
  if (output.classes > 0) {
    std::size_t of_row = 0;
    const std::vector<std::string> texts = class_texts(output, of_row);
    Shape shape = output.shape;
    if (!shape.empty()) shape.resize(1);
    shape.push_back(static_cast<int64_t>(of_row));
    json += ",\"datatype\":\"BYTES\",";
    append_shape(json, shape);
    if (output.binary) {
      const auto bytes = std::make_shared<std::string>();
      for (const std::string& text : texts) {
        append_length(*bytes, text.size());
        *bytes += text;
      }
      append_binary_size(json, bytes->size());
      binary.push_back({bytes, *bytes});
    } else {
      json += ",\"data\":[";
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) json += ',';
        append_json_string(json, texts[i]);
      }
      json += ']';
    }
  } else {
    json.append(",\"datatype\":\"").append(datatype_of(output.dtype)).append("\",");
    append_shape(json, output.shape);
    if (output.binary || is_half(output.dtype)) {
      append_binary_size(json, output.values.size());
      binary.push_back(shared(output));
    } else {
      json += ",\"data\":[";
      append_numbers(json, output);
      json += ']';
    }
  }
  json += '}';
}

}  // namespace

void append_json_string(std::string& json, std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  if (plain) {
    json.append("\"").append(text).append("\"");
    return;
  }
  json += nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

EncodedAnswer encode_infer_answer(const InferAnswer& answer) {
  EncodedAnswer encoded;
  std::string& json = encoded.body;
  std::vector<SharedBytes> binary;
  json += '{';
  if (!answer.id.empty()) {
    json += "\"id\":";
    append_json_string(json, answer.id);
    json += ',';
  }
  json += "\"model_name\":";
  append_json_string(json, answer.model);
  json += ",\"model_version\":";
  append_json_string(json, answer.version);
  json += ",\"outputs\":[";
  for (std::size_t i = 0; i < answer.outputs.size(); ++i) {
    if (i > 0) json += ',';
    append_output(json, binary, answer.outputs[i]);
    encoded.has_binary = encoded.has_binary || answer.outputs[i].binary || is_half(answer.outputs[i].dtype);
  }
  json += "]}";
  encoded.header_bytes = json.size();
  const std::size_t bytes =
      std::accumulate(binary.begin(), binary.end(), std::size_t{0},
                      [](std::size_t sum, const SharedBytes& part) { return sum + part.bytes.size(); });
  if (bytes > kMostJoined) {
    encoded.rest = std::move(binary);
  } else {
    for (const SharedBytes& part : binary) json += part.bytes;
  }
  return encoded;
}

}  // namespace gpunn::serving
