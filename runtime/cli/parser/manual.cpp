// The verb `gpunn manual`: writes a man page for each verb from its --help. Packages install the pages.
#include <gpunn/error.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/parser/help_rows.hpp"
#include "cli/parser/suggest.hpp"

namespace gpunn::cli {

namespace {

// Escapes text for roff: hyphens stay hyphens that can be copied into a shell, and no line begins with a request.
std::string roff(const std::string& text) {
  std::string result;
  bool begins = true;
  for (const char letter : text) {
    if (begins && (letter == '.' || letter == '\'')) result += "\\&";
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
    begins = letter == '\n';
  }
  return result;
}

std::string section(const std::string& title, const HelpRows& rows) {
  std::string text;
  for (const auto& [name, about] : rows) text += ".TP\n.B " + roff(name) + "\n" + roff(about) + "\n";
  return text.empty() ? text : ".SH " + title + "\n" + text;
}

// The lines below a help: "Examples:" with indented lines, then perhaps paragraphs.
std::string examples(const std::string& footer) {
  std::istringstream lines(footer);
  std::string text;
  bool literal = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Example:" || line == "Examples:") {
      text += ".SH EXAMPLES\n";
      continue;
    }
    const bool set_in = line.starts_with("  ");
    if (set_in != literal) text += set_in ? ".nf\n" : ".fi\n";
    literal = set_in;
    text += line.empty() ? ".PP\n" : roff(set_in ? line.substr(2) : line) + "\n";
  }
  return literal ? text + ".fi\n" : text;
}

// "gpunn-data-get"
std::string page_name(const CLI::App& verb) {
  std::string name = full_name(verb);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string page_of(const CLI::App& verb) {
  std::string title = page_name(verb);
  std::ranges::transform(title, title.begin(), [](unsigned char letter) { return std::toupper(letter); });
  std::string text = ".TH " + roff(title) + " 1 \"\" \"gpunn " + version() + "\" \"gpunn\"\n";
  text += ".SH NAME\n" + roff(page_name(verb)) + " \\- " + roff(verb.get_description()) + "\n";
  text += ".SH SYNOPSIS\n.B " + roff(full_name(verb)) + "\n" + roff(usage_of(verb)) + "\n";
  text += ".SH DESCRIPTION\n" + roff(verb.get_description()) + "\n";
  for (const std::string& group : groups_of(verb)) {
    text += section(group == "Subcommands" ? "VERBS" : roff("\"" + group + "\""), verb_rows(verb, group));
  }
  text += section("ARGUMENTS", argument_rows(verb)) + section("OPTIONS", option_rows(verb));
  text += examples(verb.get_footer()) + ".SH \"SEE ALSO\"\n";
  std::vector<const CLI::App*> others = shown_verbs(verb);
  if (verb.get_parent() != nullptr) others.insert(others.begin(), verb.get_parent());
  for (const CLI::App* other : others) {
    text += ".BR " + roff(page_name(*other)) + (other == others.back() ? " (1)\n" : " (1),\n");
  }
  return text;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Error("can't write " + file.string());
}

void write_pages(const std::filesystem::path& folder, const CLI::App& verb) {
  const std::string name = page_name(verb);
  write(folder / (name + ".1"), page_of(verb));
  for (const std::string& alias : verb.get_aliases()) {
    std::string other = name;
    other.replace(other.size() - verb.get_name().size(), verb.get_name().size(), alias);
    write(folder / (other + ".1"), ".so man1/" + name + ".1\n");
  }
  for (const CLI::App* below : shown_verbs(verb)) write_pages(folder, *below);
}

}  // namespace

void add_manual(CommandLine& line) {
  auto folder = std::make_shared<std::filesystem::path>();
  Verb verb = line.program.add_verb("manual", "Write a page of man for each verb", {"gpunn manual man/man1"});
  verb.hidden();
  verb.add_option("folder", *folder, "Folder for the pages; created if it does not exist").required().type_name("DIR");
  verb.callback([&line, folder] {
    line.action = [&line, folder] {
      line.app->clear();  // else the program's page is that of the verb that was given, this one
      std::filesystem::create_directories(*folder);
      write_pages(*folder, *line.app);
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
