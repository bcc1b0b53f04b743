#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

// The contents of a verb's help, before the layout for a terminal or a manual page.
namespace gpunn::cli {

using HelpRows = std::vector<std::pair<std::string, std::string>>;

// The positional arguments, or the options: how each is written, and what it does.
HelpRows argument_rows(const CLI::App& verb);
HelpRows option_rows(const CLI::App& verb);

// What follows the verb's name in a line: "[OPTIONS] EXPERIMENT", "[OPTIONS] VERB ...".
std::string usage_of(const CLI::App& verb);

// The verbs below this one that are not hidden.
std::vector<const CLI::App*> shown_verbs(const CLI::App& app);

// The headings of these verbs in order, and the verbs under one heading.
std::vector<std::string> groups_of(const CLI::App& app);
HelpRows verb_rows(const CLI::App& app, const std::string& group);

}  // namespace gpunn::cli
