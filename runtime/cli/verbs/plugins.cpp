#include <gpunn/plugins.hpp>

#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

namespace {

void print_table(const std::vector<PluginReport>& reports) {
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  Table table({{"NAME"},
               {"STATUS"},
               {"VERSION"},
               {"ABI", Align::right},
               {"BASE"},
               {"PRIORITY", Align::right},
               {"DEVICES", Align::right},
               {"FILE"}});
  for (const PluginReport& report : reports) {
    const bool loaded = !report.name.empty();
    const bool harmless = report.status == PluginStatus::no_device || report.status == PluginStatus::shadowed;
    const Colour colour = report.status == PluginStatus::ok ? Colour::green : harmless ? Colour::yellow : Colour::red;
    table.add({loaded ? printable(report.name) : "-",
               coloured(std::string(name_of(report.status)), colour, terminal.colour),
               loaded ? printable(report.version) : "-",
               report.abi_major > 0 ? fmt::format("{}.{}", report.abi_major, report.abi_minor) : "-",
               report.base.empty() ? "-" : printable(report.base), loaded ? std::to_string(report.priority) : "-",
               loaded ? std::to_string(report.devices) : "-", report.path.string()});
  }
  put("{}", table.text(terminal.colour));
  for (const PluginReport& report : reports) {
    if (report.status != PluginStatus::ok && !report.detail.empty()) {
      put("\n{}: {}\n  {}\n", report.path.filename().string(), name_of(report.status), printable(report.detail));
    }
  }
}

}  // namespace

void add_plugins(CommandLine& line) {
  struct Options {
    std::vector<std::filesystem::path> plugins;
    bool names = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb("plugins", "List every plugin file found, and its status",
                                    {"gpunn plugins", "gpunn plugins --plugin build/libgpunn_backend_mine.so --json"});
  add_plugin_option(verb, options->plugins);
  verb.add_flag("--names", options->names, "Print only the names of the working backends, one on each line");
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const std::vector<PluginReport> reports = list_plugins(options->plugins);
      if (line.json) {
        Json document = Json::array();
        for (const PluginReport& report : reports) document.push_back(to_json(report));
        print_json(document);
      } else if (options->names) {
        for (const PluginReport& report : reports) {
          if (report.status == PluginStatus::ok) put("{}\n", printable(report.name));
        }
      } else if (reports.empty()) {
        put("no plugin files found; they are called libgpunn_backend_*.so and searched in --plugin, $GPUNN_PLUGIN_PATH "
            "and beside libgpunn\n");
      } else {
        print_table(reports);
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
