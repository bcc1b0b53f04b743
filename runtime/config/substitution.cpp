#include "config/substitution.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/text.hpp"
#include "config/values.hpp"

namespace gpunn::config {

namespace {

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

[[noreturn]] void fail(const std::string& message) { throw Error(message, ExitCode::usage); }

// Whole numbers with + - * / and brackets, by recursive descent.
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}

  int64_t evaluate() {
    const int64_t value = sum();
    if (at_ != text_.size()) syntax();
    return value;
  }

 private:
  [[noreturn]] void syntax() const { fail("can't work out '" + std::string(text_) + "'"); }
  [[noreturn]] void overflow() const { fail(in_quotes(text_) + " is too large a number"); }

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  int64_t sum() {
    int64_t value = product();
    for (char sign = next(); sign == '+' || sign == '-'; sign = next()) {
      ++at_;
      const int64_t other = product();
      if (sign == '+' ? __builtin_add_overflow(value, other, &value) : __builtin_sub_overflow(value, other, &value)) {
        overflow();
      }
    }
    return value;
  }

  int64_t product() {
    int64_t value = factor();
    for (char sign = next(); sign == '*' || sign == '/'; sign = next()) {
      ++at_;
      const int64_t other = factor();
      if (sign == '*') {
        if (__builtin_mul_overflow(value, other, &value)) overflow();
      } else {
        if (other == 0) fail(in_quotes(text_) + " divides by 0");
        if (other == -1) fail(in_quotes(text_) + " divides by a negative number");
        if (value % other != 0) fail(in_quotes(text_) + " is not a whole number");
        value /= other;
      }
    }
    return value;
  }

  int64_t factor() {
    if (++depth_ > kDeepest) syntax();
    int64_t value = 0;
    if (next() == '-') {
      ++at_;
      if (__builtin_sub_overflow(int64_t{0}, factor(), &value)) overflow();
    } else if (next() == '(') {
      ++at_;
      value = sum();
      if (next() != ')') syntax();
      ++at_;
    } else {
      value = digits();
    }
    --depth_;
    return value;
  }

  int64_t digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    if (at_ == start) syntax();
    const std::optional<int64_t> value = integer_of(text_.substr(start, at_ - start));
    if (!value) overflow();
    return *value;
  }

  static constexpr int kDeepest = 50;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

bool looks_like_arithmetic(std::string_view text) {
  const auto is_operator = [](char c) { return c == '+' || c == '-' || c == '*' || c == '/'; };
  return std::all_of(text.begin(), text.end(),
                     [&](char c) {
                       return std::isdigit(static_cast<unsigned char>(c)) != 0 || is_operator(c) || c == ' ' ||
                              c == '(' || c == ')';
                     }) &&
         std::any_of(text.begin(), text.end(), is_operator) && !integer_of(text).has_value();
}

struct Mention {
  std::string name;
  std::size_t end = 0;  // behind it
  bool closed = true;   // no "${" without its '}'
};

// "$name" or "${name}" from the '$' at `at` on.
Mention mention_at(std::string_view text, std::size_t at) {
  const bool braces = at + 1 < text.size() && text[at + 1] == '{';
  const std::size_t start = at + (braces ? 2 : 1);
  std::size_t end = start;
  while (end < text.size() && is_name_char(text[end])) ++end;
  Mention mention{std::string(text.substr(start, end - start)), end, true};
  if (braces) {
    mention.closed = end < text.size() && text[end] == '}';
    ++mention.end;
  }
  return mention;
}

}  // namespace

std::string substitute(std::string_view text, const std::map<std::string, std::string>& parameters) {
  constexpr std::size_t kLongest = 4096;  // a name or a formula is shorter
  if (text.find('$') == std::string_view::npos) return std::string(text);
  if (text.size() > kLongest) fail("a text with $ in it is longer than " + std::to_string(kLongest) + " characters");
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    const Mention mention = mention_at(text, at);
    const std::string& name = mention.name;
    if (name.empty()) fail("expected a parameter's name behind '$' in " + in_quotes(text));
    if (!mention.closed) fail("expected '}' behind '${" + name + "'");
    const auto found = parameters.find(name);
    if (found == parameters.end()) {
      std::vector<std::string> names;
      for (const auto& [known, value] : parameters) names.push_back(known);
      fail("unknown parameter '$" + name + "'" + did_you_mean_or_list(name, names));
    }
    result += found->second;
    if (result.size() > kLongest) fail("more than " + std::to_string(kLongest) + " characters with its parameters");
    at = mention.end;
  }
  return looks_like_arithmetic(result) ? std::to_string(Arithmetic(result).evaluate()) : result;
}

void collect_parameters(std::string_view text, std::set<std::string>& names) {
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    names.insert(mention_at(text, at).name);
  }
}

}  // namespace gpunn::config
