#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/parser/complete.hpp"
#include "cli/terminal/output.hpp"

namespace gpunn::cli {

namespace {

// bash splits words at '=' and ':' and replaces only the part behind the last one: `words` joins the parts again, and
// `stands` is the part that is already there.
constexpr const char* kBash = R"(# bash completion for gpunn; source it, or save it as a file of bash-completion
# The program itself says what fits: gpunn res<TAB> completes to resume, --backend c<TAB> to the names that
# `gpunn plugins --names` prints.
_gpunn() {
  local i word open='' breaks='' stands='' words=()
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ -n $breaks && ${#words[@]} -gt 0 && ( -n $open || $word == ["$breaks"]* ) ]]; then
      words[${#words[@]}-1]+=$word
    else
      words+=("$word")
    fi
    open=''
    [[ -n $breaks && $word == *["$breaks"] ]] && open=yes
  done
  word=${words[${#words[@]}-1]}
  [[ -n $breaks && $word == *["$breaks"]* ]] && stands=${word%"${word##*["$breaks"]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    [[ -n $word ]] && COMPREPLY+=("${word#"$stands"}")
  done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/,] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _gpunn gpunn
)";

constexpr const char* kZsh = R"(#compdef gpunn
# zsh completion for gpunn; save it as _gpunn in a folder of $fpath
# The program itself says what fits: gpunn res<TAB> completes to resume, --backend c<TAB> to the names that
# `gpunn plugins --names` prints.
_gpunn() {
  local line word
  local -a closed open closed_texts open_texts
  for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    word=${line%%$'\t'*}
    [[ -z $word ]] && continue
    line=${line/$'\t'/  -- }
    if [[ $word == *[=/,] ]]; then
      open+=("$word")
      open_texts+=("$line")
    else
      closed+=("$word")
      closed_texts+=("$line")
    fi
  done
  (( $#closed )) && compadd -l -d closed_texts -- "${closed[@]}"
  (( $#open )) && compadd -l -S '' -d open_texts -- "${open[@]}"
  (( $#closed + $#open )) || _files
}
if [[ $funcstack[1] == _gpunn ]]; then _gpunn "$@"; else compdef _gpunn gpunn; fi
)";

constexpr const char* kFish = R"(# fish completion for gpunn; save it as ~/.config/fish/completions/gpunn.fish
# The program itself says what fits: gpunn res<TAB> completes to resume, --backend c<TAB> to the names that
# `gpunn plugins --names` prints.
function __gpunn_complete
    set -l words (commandline -opc)
    $words[1] complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c gpunn -f -a '(__gpunn_complete)'
)";

struct Script {
  const char* shell;
  const char* text;
};
constexpr Script kScripts[] = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};

// The verb that the scripts call: it prints the words that may come next, one on each line, with a tab and a
// description.
void add_complete(CommandLine& line) {
  auto words = std::make_shared<std::vector<std::string>>();
  Verb verb = line.program.add_verb("complete", "List what may come next in a line", {"gpunn complete -- run x.y"});
  verb.hidden();
  verb.add_option("words", *words, "The line without the program's name").type_name("TEXT");
  verb.callback([&line, words] {
    line.action = [&line, words] {
      for (const Completion& one : complete(*line.app, *words)) {
        put("{}{}{}\n", one.word, one.about.empty() ? "" : "\t", one.about);
      }
      return ExitCode::done;
    };
  });
}

// The script with which the shell asks gpunn for the words that can complete a line; empty for another shell.
std::string completion_script(const std::string& shell) {
  for (const Script& script : kScripts) {
    if (script.shell == shell) return script.text;
  }
  return {};
}

}  // namespace

void add_completion(CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  Verb verb = line.program.add_verb("completion", "Print a completion script for a shell",
                                    {"source <(gpunn completion bash)", "gpunn completion fish > gpunn.fish"});
  verb.add_option("shell", *shell, "The shell that reads the script").required().one_of({"bash", "zsh", "fish"});
  verb.callback([&line, shell] {
    line.action = [shell] {
      put("{}", completion_script(*shell));
      return ExitCode::done;
    };
  });
  add_complete(line);
}

}  // namespace gpunn::cli
