#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The part of CLI11 that verbs need, under CLI11's names. CLI11's headers take longer to compile than a verb, and ten
// times as long under the sanitizers, so only arguments.cpp and the files that walk the tree of verbs include them.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gpunn::cli {

// An option, or a positional argument.
class Argument {
 public:
  Argument() = default;
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument& required();
  Argument& type_name(const std::string& name);
  Argument& capture_default_str();
  Argument& expected(int least, int most);
  // May be given several times, with one value each.
  Argument& repeated();
  Argument& range(int64_t least, int64_t most);
  Argument& not_negative();
  // Shown as "bash|zsh|fish" instead of a type's name.
  Argument& one_of(const std::vector<std::string>& words);
  // Requires the name of a chart's file.
  Argument& svg_file();
  Argument& needs(const std::string& other);
  Argument& excludes(const std::string& other);

  bool given() const;

 private:
  CLI::Option* option_ = nullptr;
};

// The program, or one of its verbs.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  // Heading of the verbs that are added after this call.
  void begin_group(const std::string& heading) { group_ = heading; }
  // Adds a verb below this one. The examples, one on each line, follow its help.
  Verb add_verb(const std::string& name, const std::string& description, const std::vector<std::string>& examples);

  // Another name for the same verb.
  Verb& alias(const std::string& name);
  // Hidden from help and completion: shells call it.
  Verb& hidden();

  // Types of values: those in the list of arguments.cpp.
  template <typename T>
  Argument add_option(const std::string& name, T& value, const std::string& help);
  Argument add_flag(const std::string& name, bool& value, const std::string& help);
  // Calls `set` with the value.
  Argument add_option_callback(const std::string& name, const std::function<void(const std::string&)>& set,
                               const std::string& help);
  Argument add_flag_callback(const std::string& name, std::function<void()> callback, const std::string& help);
  // One value of an enumeration, by name.
  template <typename Enum>
  Argument add_choice(const std::string& name, Enum& value, const std::vector<std::pair<std::string, Enum>>& names,
                      const std::string& help) {
    std::vector<std::string> words;
    std::string otherwise;
    for (const auto& [word, one] : names) {
      words.push_back(word);
      if (one == value) otherwise = word;
    }
    return add_word(
        name,
        [&value, names](const std::string& given) {
          for (const auto& [word, one] : names) {
            if (word == given) value = one;
          }
        },
        words, otherwise, help);
  }

  // One of the verbs below must be given.
  void require_verb();
  // Called after the whole line is parsed, if the verb was given.
  void callback(std::function<void()> callback);

 private:
  Argument add_word(const std::string& name, const std::function<void(const std::string&)>& set,
                    const std::vector<std::string>& words, const std::string& otherwise, const std::string& help);

  CLI::App* app_;
  std::string group_;
};

// The program with --version; `footer` follows its help.
std::shared_ptr<CLI::App> make_app(const std::string& name, const std::string& description, const std::string& version,
                                   const std::string& footer);

}  // namespace gpunn::cli
