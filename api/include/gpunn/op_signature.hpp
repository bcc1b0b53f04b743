// Reads the signatures of op_list.inc: the inputs and outputs of an op, and whether tensors fit them. The host uses it
// when it builds a graph, and plugins when they plan a kernel, so that both demand the same.
#pragma once

#include <gpunn/abi.h>
#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpunn::ops {

// Inputs of an op that takes any number of them.
inline constexpr std::size_t kMostParts = 16;

// What does not fit, with what was expected and what was found.
class Misfit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& otherwise) {
  if (!holds) throw Misfit(otherwise);
}

// A packed tensor without its data.
struct Tensor {
  int32_t dtype = GPUNN_F32;
  std::vector<int64_t> shape;
  bool operator==(const Tensor&) const = default;
};

struct Dtype {
  int32_t id;
  std::string_view name;
  std::size_t bytes;  // of an element
};

inline constexpr Dtype kDtypes[] = {{GPUNN_F32, "f32", 4}, {GPUNN_BF16, "bf16", 2}, {GPUNN_F16, "f16", 2},
                                    {GPUNN_F64, "f64", 8}, {GPUNN_I32, "i32", 4},   {GPUNN_I64, "i64", 8},
                                    {GPUNN_U8, "u8", 1}};

// nullptr for a number that is none.
constexpr const Dtype* find_dtype(int32_t id) {
  for (const Dtype& one : kDtypes) {
    if (one.id == id) return &one;
  }
  return nullptr;
}

// What "float" in a signature may be.
constexpr bool is_floating(int32_t id) { return id == GPUNN_F32 || id == GPUNN_BF16 || id == GPUNN_F16; }
constexpr bool is_half(int32_t id) { return id == GPUNN_BF16 || id == GPUNN_F16; }

// Bytes of an element; 0 for an unknown dtype.
constexpr std::size_t dtype_bytes(int32_t id) {
  const Dtype* found = find_dtype(id);
  return found != nullptr ? found->bytes : 0;
}

inline std::string dtype_text(int32_t id) {
  const Dtype* found = find_dtype(id);
  return found != nullptr ? std::string(found->name) : "dtype " + std::to_string(id);
}

inline std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

// "5x5", of the two numbers that an attribute has for rows and columns.
inline std::string pair_text(const int32_t (&values)[2]) {
  return std::to_string(values[0]) + "x" + std::to_string(values[1]);
}

inline std::string text_of(const Tensor& tensor) { return dtype_text(tensor.dtype) + shape_text(tensor.shape); }

// One input or output as its signature has it.
struct Pattern {
  std::string_view name;
  std::vector<int32_t> dtypes;          // allowed; empty: any
  bool floating = false;                // "float": of the dtype that all such tensors of the op share
  std::vector<std::string_view> sizes;  // names and numbers
  bool rest = false;                    // "..." behind them
  bool computed = false;                // "[?]"
  bool optional = false;
  bool repeated = false;         // the last input: any number of them, also none
  int in_place = -1;             // of an output: the input whose memory it is
  std::vector<int> may_alias{};  // of an output: the inputs whose memory it may be
};

struct Signature {
  std::vector<Pattern> inputs, outputs;
  std::vector<std::string_view> positive;  // sizes that must not be 0
  bool strided = false;                    // tensors may have any strides
  bool elementwise = false;                // of tensors of one order in memory, whatever it is
  std::size_t least_inputs = 0;
  std::size_t most_inputs = 0;

  // The last input may be repeated.
  const Pattern& input(std::size_t i) const { return inputs[std::min(i, inputs.size() - 1)]; }
};

// A row of op_list.inc.
struct Op {
  int32_t id = 0;
  std::string_view name;       // "CONV2D"
  std::size_t attributes = 0;  // bytes of the struct
  std::string_view text;       // of the signature
  Signature signature;
  std::string_view summary;  // a line
};

namespace detail {

// Takes `text` up to `end`, which goes too.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

inline std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = take_until(text, at);
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

inline int index_of(const std::vector<Pattern>& patterns, std::string_view name) {
  const auto found = std::ranges::find(patterns, name, &Pattern::name);
  return found == patterns.end() ? -1 : static_cast<int>(found - patterns.begin());
}

// "label?:i32[N]~x"
inline Pattern read_pattern(std::string_view text, const std::vector<Pattern>& inputs) {
  Pattern pattern;
  std::string_view head = take_until(text, '[');
  const std::string_view sizes = take_until(text, ']');
  pattern.name = take_until(head, ':');
  pattern.optional = pattern.name.ends_with('?');
  pattern.repeated = pattern.name.ends_with('*');
  if (pattern.optional || pattern.repeated) pattern.name.remove_suffix(1);
  if (head.empty()) pattern.dtypes = {GPUNN_F32};
  pattern.floating = head == "float";
  if (pattern.floating) pattern.dtypes = {GPUNN_F32, GPUNN_BF16, GPUNN_F16};
  for (const std::string_view one : split(head, '|')) {
    for (const Dtype& dtype : kDtypes) {
      if (dtype.name == one) pattern.dtypes.push_back(dtype.id);
    }
  }
  for (const std::string_view size : split(sizes, ',')) {
    if (size == "?") {
      pattern.computed = true;
    } else if (size == "...") {
      pattern.rest = true;
    } else {
      pattern.sizes.push_back(size);
    }
  }
  for (const std::string_view name : split(text, '~')) pattern.may_alias.push_back(index_of(inputs, name));
  return pattern;
}

inline Signature read_signature(std::string_view text) {
  Signature signature;
  std::string_view conditions = text;
  std::string_view tensors = take_until(conditions, ';');
  const std::size_t arrow = tensors.find("->");
  for (const std::string_view one : split(tensors.substr(0, arrow), ' ')) {
    signature.inputs.push_back(read_pattern(one, {}));
    const Pattern& input = signature.inputs.back();
    if (!input.optional && !input.repeated) ++signature.least_inputs;
    signature.most_inputs = input.repeated ? kMostParts : signature.inputs.size();
  }
  for (const std::string_view one : split(tensors.substr(arrow + 2), ' ')) {
    Pattern output = read_pattern(one, signature.inputs);
    output.in_place = index_of(signature.inputs, output.name);
    signature.outputs.push_back(std::move(output));
  }
  for (const std::string_view one : split(conditions, ' ')) {
    if (one == "strided") {
      signature.strided = true;
    } else if (one == "elementwise") {
      signature.elementwise = true;
    } else {
      signature.positive.push_back(one.substr(0, one.find('>')));
    }
  }
  return signature;
}

}  // namespace detail

// By id.
inline const std::map<int32_t, Op>& all() {
  static const std::map<int32_t, Op> ops = [] {
    std::map<int32_t, Op> table;
#define GPUNN_OP(name, id, attributes, signature, summary) \
  table.emplace(id, Op{id, #name, sizeof(attributes), signature, detail::read_signature(signature), summary});
#include <gpunn/op_list.inc>
#undef GPUNN_OP
    return table;
  }();
  return ops;
}

// The sizes that the names of a signature stand for in some tensors.
class Sizes {
 public:
  // Throws Misfit if a tensor does not fit its pattern and the sizes so far.
  void match(const Pattern& pattern, const Tensor& tensor) {
    if (pattern.floating && floating_ == kUnknown) floating_ = tensor.dtype;
    const bool right_dtype =
        (pattern.dtypes.empty() || std::ranges::find(pattern.dtypes, tensor.dtype) != pattern.dtypes.end()) &&
        (!pattern.floating || tensor.dtype == floating_);
    if (right_dtype && pattern.computed) return;
    if (!right_dtype || !try_match(pattern, tensor.shape)) {
      throw Misfit(std::string(pattern.name) + " must be " + expected(pattern) + ", is " + text_of(tensor));
    }
  }

  // The tensor that a pattern stands for.
  Tensor tensor(const Pattern& pattern) const {
    Tensor made{dtype(pattern), {}};
    for (const std::string_view size : pattern.sizes) made.shape.push_back(value(size));
    if (pattern.rest) made.shape.insert(made.shape.end(), rest_.begin(), rest_.end());
    return made;
  }

  int32_t dtype(const Pattern& pattern) const {
    if (pattern.floating && floating_ != kUnknown) return floating_;
    return pattern.dtypes.empty() ? GPUNN_F32 : pattern.dtypes.front();
  }

  bool has(std::string_view size) const { return find(size) != sizes_.end(); }
  int64_t value(std::string_view size) const {
    const auto found = find(size);
    return found != sizes_.end() ? found->second : number(size);
  }

 private:
  using Bound = std::vector<std::pair<std::string_view, int64_t>>;

  static bool is_number(std::string_view size) { return size.front() >= '0' && size.front() <= '9'; }
  static int64_t number(std::string_view size) { return std::atoll(std::string(size).c_str()); }
  Bound::const_iterator find(std::string_view size) const {
    return std::ranges::find(sizes_, size, &Bound::value_type::first);
  }

  bool try_match(const Pattern& pattern, const std::vector<int64_t>& shape) {
    const std::size_t fixed = pattern.sizes.size();
    if (shape.size() < fixed || (shape.size() > fixed && !pattern.rest)) return false;
    for (std::size_t i = 0; i < fixed; ++i) {
      const std::string_view size = pattern.sizes[i];
      if (is_number(size) || has(size)) {
        if (shape[i] != value(size)) return false;
      } else {
        sizes_.emplace_back(size, shape[i]);
      }
    }
    if (!pattern.rest) return true;
    const std::vector<int64_t> rest(shape.begin() + static_cast<std::ptrdiff_t>(fixed), shape.end());
    if (has_rest_) return rest == rest_;
    rest_ = rest;
    has_rest_ = true;
    return true;
  }

  // "f32[N, C] = [8, 3]", or with the sizes known so far: "f32[N, C, ...] with N = 8".
  std::string expected(const Pattern& pattern) const {
    std::string text, known;
    const bool one_dtype = pattern.floating && is_floating(floating_);
    for (const int32_t allowed : one_dtype ? std::vector{floating_} : pattern.dtypes) {
      text += (text.empty() ? "" : " or ") + dtype_text(allowed);
    }
    text += "[";
    bool all_known = !pattern.rest || has_rest_;
    for (const std::string_view size : pattern.sizes) {
      text += (size == pattern.sizes.front() ? "" : ", ") + std::string(size);
      if (is_number(size)) continue;
      all_known = all_known && has(size);
      if (has(size))
        known += (known.empty() ? " with " : ", ") + std::string(size) + " = " + std::to_string(value(size));
    }
    if (pattern.rest) text += pattern.sizes.empty() ? "..." : ", ...";
    text += "]";
    if (pattern.sizes.empty() && !pattern.rest) return text;
    return text + (all_known ? " = " + shape_text(tensor(pattern).shape) : known);
  }

  static constexpr int32_t kUnknown = -1;

  Bound sizes_;
  int32_t floating_ = kUnknown;  // what tensors of dtype "float" are
  std::vector<int64_t> rest_;
  bool has_rest_ = false;
};

}  // namespace gpunn::ops
