#include "cli/completion.hpp"

#include <memory>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.hpp"

namespace gpunn::cli {

namespace {

constexpr const char* kBackends = "gpunn plugins --names 2>/dev/null";

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "--help --set ...", and the names of the verbs below.
std::string words_of(const CLI::App& app) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : " ") + word; };
  for (const CLI::App* verb : verbs_of(app)) add(verb->get_name());
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) add("--" + name);
  }
  return words;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// `text` inside single quotes, for any of the shells.
std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

void append_bash_cases(const CLI::App& app, const std::string& path, std::string& out) {
  out += fmt::format("    {}) words={} ;;\n", single_quoted(path), single_quoted(words_of(app)));
  for (const CLI::App* verb : verbs_of(app)) {
    append_bash_cases(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), out);
  }
}

std::string zsh_argument(const CLI::Option& option, const std::string& name) {
  // '*' lets an option come again. Brackets and colons would end the description.
  std::string result = "*--" + name + "[";
  for (const char c : option.get_description()) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  result += "]";
  if (takes_value(option)) result += name == "backend" ? ":name:_gpunn_backends" : ":value:_files";
  return single_quoted(result);
}

void append_zsh_function(const CLI::App& app, const std::string& function, std::string& out) {
  const std::vector<const CLI::App*> verbs = verbs_of(app);
  for (const CLI::App* verb : verbs) append_zsh_function(*verb, function + "_" + verb->get_name(), out);
  out += function + "() {\n";
  if (!verbs.empty()) out += "  local context state line\n  local -a verbs\n";
  out += "  _arguments";
  if (!verbs.empty()) out += " -C";
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out += " \\\n    " + zsh_argument(*option, name);
  }
  if (verbs.empty()) {
    out += " \\\n    '*:file:_files'\n}\n";
    return;
  }
  out += " \\\n    '1:verb:->verb' '*::argument:->argument'\n  case $state in\n  verb)\n    verbs=(\n";
  for (const CLI::App* verb : verbs) {
    out += "      " + single_quoted(verb->get_name() + ":" + verb->get_description()) + "\n";
  }
  out += "    )\n    _describe verb verbs ;;\n  argument)\n    case $line[1] in\n";
  for (const CLI::App* verb : verbs) {
    out += fmt::format("    {0}) {1}_{0} ;;\n", verb->get_name(), function);
  }
  out += "    esac ;;\n  esac\n}\n";
}

void append_fish_lines(const CLI::App& app, const std::string& condition, std::string& out) {
  const std::string when = single_quoted(condition);
  for (const CLI::App* verb : verbs_of(app)) {
    std::string none_of;
    for (const CLI::App* other : verbs_of(app)) none_of += " " + other->get_name();
    out += fmt::format("complete -c gpunn -n {} -f -a {} -d {}\n",
                       single_quoted(condition + "; and not __fish_seen_subcommand_from" + none_of), verb->get_name(),
                       single_quoted(verb->get_description()));
    append_fish_lines(*verb, condition + "; and __fish_seen_subcommand_from " + verb->get_name(), out);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      out += fmt::format("complete -c gpunn -n {} -l {} -d {}", when, name, single_quoted(option->get_description()));
      if (takes_value(*option)) out += name == "backend" ? fmt::format(" -x -a '({})'", kBackends) : " -r";
      out += "\n";
    }
  }
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string out =
      "# bash completion for gpunn; source it, or save it as a file of bash-completion\n"
      "_gpunn() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} path='' words='' i\n"
      "  COMPREPLY=()\n"
      "  if [[ $previous == --backend ]]; then\n";
  out += fmt::format("    COMPREPLY=($(compgen -W \"$({})\" -- \"$current\"))\n    return\n  fi\n", kBackends);
  out += "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$path ${COMP_WORDS[i]}\" in\n";
  for (const CLI::App* verb : verbs_of(app)) {
    out += fmt::format("    ' {0}') path={0} ;;\n", verb->get_name());
    for (const CLI::App* below : verbs_of(*verb)) {
      out += fmt::format("    '{0} {1}') path='{0} {1}' ;;\n", verb->get_name(), below->get_name());
    }
  }
  out += "    esac\n  done\n  case \"$path\" in\n";
  append_bash_cases(app, "", out);
  out +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}\n"
      "complete -o default -F _gpunn gpunn\n";
  return out;
}

std::string zsh_completion(const CLI::App& app) {
  std::string out = "#compdef gpunn\n# zsh completion for gpunn; save it as _gpunn in a folder of $fpath\n";
  out += fmt::format("_gpunn_backends() {{ compadd -- ${{(f)\"$({})\"}} }}\n", kBackends);
  append_zsh_function(app, "_gpunn", out);
  out += "if [[ $funcstack[1] == _gpunn ]]; then _gpunn \"$@\"; else compdef _gpunn gpunn; fi\n";
  return out;
}

std::string fish_completion(const CLI::App& app) {
  std::string out = "# fish completion for gpunn; save it as ~/.config/fish/completions/gpunn.fish\n";
  append_fish_lines(app, "true", out);
  return out;
}

void add_completion(CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  Verb verb = line.program.add_verb("completion", "Print a completion script for a shell",
                                    {"source <(gpunn completion bash)", "gpunn completion fish > gpunn.fish"});
  verb.add_option("shell", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"}).type_name("SHELL");
  verb.callback([&line, shell] {
    line.action = [&line, shell] {
      const std::string script = *shell == "bash"  ? bash_completion(*line.app)
                                 : *shell == "zsh" ? zsh_completion(*line.app)
                                                   : fish_completion(*line.app);
      fmt::print("{}", script);
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
