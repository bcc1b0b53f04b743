#include "bench/op_request.hpp"

#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>
#include <gpunn/random.h>
#include <gpunn/words.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <sstream>

#include "bench/requests/request.hpp"
#include "common/text.hpp"

namespace gpunn::bench {

void bad(const Written& written, const std::string& expected) {
  throw Error("bench op " + written.op + ": expected " + expected + ", got '" + written.text + "'", ExitCode::usage);
}

int64_t take(Written& written, const std::string& option, int64_t otherwise) {
  const auto found = written.options.find(option);
  if (found == written.options.end()) return otherwise;
  const int64_t value = found->second;
  written.options.erase(found);
  return value;
}

namespace {

int64_t number(const Written& written, const std::string& text) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 0 ||
      value > std::numeric_limits<int32_t>::max()) {
    bad(written, "numbers from 0 to 2^31 - 1 separated by 'x' or ','");
  }
  return value;
}

Written parse(const std::string& op, const std::string& shape) {
  Written written{.op = op, .text = shape, .sizes = {}, .options = {}};
  std::istringstream parts(shape);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos) {
      written.options[part.substr(0, equals)] = number(written, part.substr(equals + 1));
      continue;
    }
    std::istringstream sizes(part);
    for (std::string size; std::getline(sizes, size, 'x');) written.sizes.push_back(number(written, size));
  }
  return written;
}

const Builders& builders() {
  static const Builders table = [] {
    Builders all;
    for (auto add : {add_elementwise, add_linear, add_convolution, add_pooling, add_shape, add_normalization, add_loss,
                     add_reduction, add_optimizer, add_random, add_batch}) {
      add(all);
    }
    return all;
  }();
  return table;
}

void store(DType type, double value, std::byte* to) {
  const auto write = [to](auto number) { std::memcpy(to, &number, sizeof(number)); };
  switch (type) {
    case DType::f32:
      return write(static_cast<float>(value));
    case DType::f64:
      return write(value);
    case DType::i32:
      return write(static_cast<int32_t>(value));
    case DType::i64:
      return write(static_cast<int64_t>(value));
    case DType::u8:
      return write(static_cast<uint8_t>(value));
    default:
      throw Error("bench: no data of type " + std::string(name_of(type)));
  }
}

}  // namespace

Content OpRequest::content(std::size_t input) const {
  if (const auto found = contents.find(input); found != contents.end()) return found->second;
  const DType type = signature.inputs.at(input).dtype;
  if (type == DType::f32) return {};
  return type == DType::u8 ? below(256) : constant(0);
}

std::vector<std::byte> OpRequest::values(std::size_t input, uint64_t seed) const {
  const TensorType& type = signature.inputs.at(input);
  const Content content = this->content(input);
  const std::size_t size = size_of(type.dtype);
  std::vector<std::byte> bytes(type.bytes());
  const double range = content.high - content.low;
  const std::size_t count = bytes.size() / size;
  gpunn_random_words block{};
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 4 == 0) block = gpunn_philox(seed, input, i / 4);
    const double unit = gpunn_random_unit(block.word[i % 4]);
    double value = content.low;
    if (content.kind == Content::Kind::uniform) value += unit * range;
    if (content.kind == Content::Kind::whole) value += std::min(unit * range, range - 1);
    if (content.kind == Content::Kind::rising) {
      value += range * static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(count - 1, 1));
    }
    store(type.dtype, value, bytes.data() + i * size);
  }
  return bytes;
}

std::vector<std::vector<std::byte>> OpRequest::inputs(uint64_t seed) const {
  std::vector<std::vector<std::byte>> result;
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) result.push_back(values(i, seed));
  if (derive) derive(signature, result);
  return result;
}

OpRequest parse_request(const std::string& op, const std::string& shape) {
  const graph::OpInfo* info = graph::find_op(op);
  const auto builder = info == nullptr ? builders().end() : builders().find(info->id);
  if (builder == builders().end()) {
    throw Error("bench: no op '" + op + "' to measure" + advice_or_list(op, bench_op_names(), "'gpunn help ops'"),
                ExitCode::usage);
  }
  Written written = parse(op, shape);
  try {
    OpRequest request = builder->second(written, *info);
    if (!written.options.empty()) bad(written, "no option '" + written.options.begin()->first + "'");
    request.signature.outputs = info->infer(request.signature.attrs, request.signature.inputs);
    return request;
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) throw;
    throw Error("bench op " + op + " " + shape + ": " + error.what(), ExitCode::usage);
  }
}

std::vector<std::string> swept(const std::string& op, const std::string& shape) {
  const std::size_t dots = shape.find("..");
  if (dots == std::string::npos) return {shape};
  const Written whole{.op = op, .text = shape, .sizes = {}, .options = {}};
  const std::size_t comma = shape.find(',');
  const std::string options = comma == std::string::npos ? "" : shape.substr(comma);
  const int64_t low = number(whole, shape.substr(0, dots));
  const int64_t high = number(whole, shape.substr(dots + 2, std::min(comma, shape.size()) - dots - 2));
  if (low < 1 || high < low) bad(whole, "a range as 512..8192, from at least 1 up");
  const graph::OpInfo* info = graph::find_op(op);
  const bool matrices = info != nullptr && (info->id == GPUNN_OP_MATMUL || info->id == GPUNN_OP_MATMUL_BIAS_ACTIVATION);
  std::vector<std::string> shapes;
  for (int64_t size = low; size <= high; size *= 2) {
    const std::string text = std::to_string(size);
    shapes.push_back((matrices ? text + "x" + text + "x" + text : text) + options);
  }
  return shapes;
}

}  // namespace gpunn::bench

namespace gpunn {

std::vector<std::string> bench_op_names() {
  std::vector<std::string> names;
  for (const auto& [id, unused] : bench::builders()) names.emplace_back(graph::op_info(id).name);
  return names;
}

}  // namespace gpunn
