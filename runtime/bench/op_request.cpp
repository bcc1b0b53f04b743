#include "bench/op_request.hpp"

#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <sstream>
#include <utility>

#include "common/parse_number.hpp"
#include "common/text.hpp"
#include "ops/op.hpp"

namespace gpunn::bench {

using ops::bad;
using ops::Written;

namespace {

int64_t number(const Written& written, const std::string& text) {
  const std::optional<int32_t> value = parse_number<int32_t>(text);
  if (!value || *value < 0) bad(written, "numbers from 0 to 2^31 - 1 separated by 'x' or ','");
  return *value;
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

void require_half(const ops::OpInfo& info, ops::CaseSpec& spec, DType dtype) {
  if (!ops::store_in_half(info, spec, dtype)) {
    throw Error("bench op: the tensors of " + std::string(info.name) + " can't be " + std::string(name_of(dtype)),
                ExitCode::usage);
  }
}

}  // namespace

std::vector<std::vector<std::byte>> inputs_of(const ops::Case& request, uint64_t seed) {
  ops::Random random(seed, request.name);
  return request.encoded_inputs(random);
}

ops::Case parse_request(const std::string& op, const std::string& shape) {
  return parse_request(op, shape, DType::f32, Layout::packed);
}

ops::Case parse_request(const std::string& op, const std::string& shape, DType dtype, Layout layout) {
  const ops::OpInfo* info = ops::find_op(op);
  if (info == nullptr || info->request == nullptr) {
    throw Error("bench: no op '" + op + "' to measure" + advice_or_list(op, bench_op_names(), "'gpunn help ops'"),
                ExitCode::usage);
  }
  Written written = parse(op, shape);
  try {
    ops::CaseSpec spec = info->request(written);
    if (!written.options.empty()) bad(written, "no option '" + written.options.begin()->first + "'");
    if (is_half(dtype)) require_half(*info, spec, dtype);
    ops::Case request = ops::make_case(info->id, std::move(spec));
    if (layout == Layout::channels_last && !ops::store_channels_last(request)) {
      throw Error("bench op " + op + " " + shape + ": has no images that could be channels-last", ExitCode::usage);
    }
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
  const ops::OpInfo* info = ops::find_op(op);
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
  for (const ops::OpInfo* info : ops::all_ops()) {
    if (info->request != nullptr) names.emplace_back(info->name);
  }
  return names;
}

}  // namespace gpunn
