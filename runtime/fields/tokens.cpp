// A sequence of tokens of each sample, i32[length].
#include <gpunn/error.hpp>

#include <algorithm>

#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::fields {

namespace {

class TokensKind : public Kind {
 public:
  std::string_view name() const override { return "tokens"; }
  std::string_view help() const override { return "a sequence of tokens of each sample"; }
  std::string_view data() const override { return "text"; }
  std::string of_sample(const Field& field) const override {
    return std::to_string(field.type.elements()) + " tokens a sample";
  }
  std::string amount(const Field& field) const override { return std::to_string(field.count()) + " different tokens"; }

  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    Shape shape = field.type.shape;
    shape.insert(shape.begin(), rows);
    require_type(values, {DType::i32, shape}, part + " tokens");
    const std::vector<int32_t> tokens = numbers_in<int32_t>(values);
    const auto bad = std::ranges::find_if(tokens, [&](int32_t t) { return t < 0 || t >= field.count(); });
    if (field.names.empty() || bad == tokens.end()) return;
    throw Error("the " + part + " tokens of " + row_text((bad - tokens.begin()) / field.type.elements()) + " hold " +
                    std::to_string(*bad) + "; expected 0 to " + std::to_string(field.count() - 1),
                ExitCode::usage);
  }
};

}  // namespace

const Kind& tokens_kind() {
  static const TokensKind kind;
  return kind;
}

}  // namespace gpunn::fields
