#include "cli/parser/arguments.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/parser/help_layout.hpp"

namespace gpunn::cli {

namespace {

std::string separated(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "|") + word;
  return text;
}

}  // namespace

Argument& Argument::required() {
  option_->required();
  return *this;
}

Argument& Argument::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Argument& Argument::capture_default_str() {
  option_->capture_default_str();
  return *this;
}

Argument& Argument::expected(int least, int most) {
  option_->expected(least, most);
  return *this;
}

Argument& Argument::repeated() {
  option_->allow_extra_args(false);
  return *this;
}

Argument& Argument::range(int64_t least, int64_t most) {
  option_->check(CLI::Range(least, most).description(""));
  return *this;
}

Argument& Argument::not_negative() {
  option_->check(CLI::Validator(CLI::NonNegativeNumber).description(""));
  return *this;
}

Argument& Argument::one_of(const std::vector<std::string>& words) {
  const auto complaint = [words](const std::string& word) {
    if (std::ranges::find(words, word) != words.end()) return std::string();
    return word + " not in " + separated(words) + advice(word, words);
  };
  option_->check(CLI::Validator(complaint, "", ""))->type_name(separated(words));
  return *this;
}

Argument& Argument::svg_file() {
  const auto complaint = [](const std::string& name) {
    return name.ends_with(".svg") ? std::string() : "expected a file that ends in .svg, found '" + name + "'";
  };
  option_->check(CLI::Validator(complaint, "", ""));
  return *this;
}

Argument& Argument::needs(const std::string& other) {
  option_->needs(other);
  return *this;
}

Argument& Argument::excludes(const std::string& other) {
  option_->excludes(other);
  return *this;
}

bool Argument::given() const { return option_ != nullptr && option_->count() > 0; }

Verb Verb::add_verb(const std::string& name, const std::string& description, const std::vector<std::string>& examples) {
  CLI::App* verb = app_->add_subcommand(name, description);
  std::string footer = examples.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& example : examples) footer += "\n  " + example;
  verb->footer(footer);
  if (!group_.empty()) verb->group(group_);
  return Verb(verb);
}

Verb& Verb::alias(const std::string& name) {
  app_->alias(name);
  return *this;
}

Verb& Verb::hidden() {
  app_->group("");
  return *this;
}

template <typename T>
Argument Verb::add_option(const std::string& name, T& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}

template Argument Verb::add_option(const std::string&, int&, const std::string&);
template Argument Verb::add_option(const std::string&, int64_t&, const std::string&);
template Argument Verb::add_option(const std::string&, uint64_t&, const std::string&);
template Argument Verb::add_option(const std::string&, std::optional<int64_t>&, const std::string&);
template Argument Verb::add_option(const std::string&, std::optional<uint64_t>&, const std::string&);
template Argument Verb::add_option(const std::string&, double&, const std::string&);
template Argument Verb::add_option(const std::string&, std::optional<double>&, const std::string&);
template Argument Verb::add_option(const std::string&, std::string&, const std::string&);
template Argument Verb::add_option(const std::string&, std::filesystem::path&, const std::string&);
template Argument Verb::add_option(const std::string&, std::vector<int64_t>&, const std::string&);
template Argument Verb::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Argument Verb::add_option(const std::string&, std::vector<std::filesystem::path>&, const std::string&);

Argument Verb::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Argument(app_->add_flag(name, value, help));
}

Argument Verb::add_flag_callback(const std::string& name, std::function<void()> callback, const std::string& help) {
  return Argument(app_->add_flag_callback(name, std::move(callback), help));
}

Argument Verb::add_option_callback(const std::string& name, const std::function<void(const std::string&)>& set,
                                   const std::string& help) {
  return Argument(app_->add_option_function<std::string>(name, set, help));
}

Argument Verb::add_word(const std::string& name, const std::function<void(const std::string&)>& set,
                        const std::vector<std::string>& words, const std::string& otherwise, const std::string& help) {
  Argument argument(app_->add_option_function<std::string>(name, set, help)->default_str(otherwise));
  return argument.one_of(words);
}

void Verb::require_verb() { app_->require_subcommand(1); }

void Verb::callback(std::function<void()> callback) { app_->callback(std::move(callback)); }

std::shared_ptr<CLI::App> make_app(const std::string& name, const std::string& description, const std::string& version,
                                   const std::string& footer) {
  auto app = std::make_shared<CLI::App>(description, name);
  app->set_version_flag("--version", version);
  app->footer(footer);
  app->formatter(std::make_shared<HelpLayout>());
  app->set_help_flag("-h,--help", "Print this help");
  return app;
}

}  // namespace gpunn::cli
