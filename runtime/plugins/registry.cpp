#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "common/text.hpp"
#include "plugins/discovery.hpp"
#include "plugins/plugin.hpp"
#include "plugins/store.hpp"

namespace gpunn::plugins {

namespace {

// A plugin's name holds neither '/' nor '.'.
bool is_path(const std::string& name) { return name.find_first_of("/.") != std::string::npos; }

std::string describe(const PluginReport& report) {
  return report.path.string() + ": " + std::string(name_of(report.status)) +
         (report.detail.empty() ? "" : ": " + report.detail);
}

[[noreturn]] void fail(const std::string& message) { throw Error(message, ExitCode::missing); }

// A file that loads, asked for its devices.
Loaded probe(const PluginReport& file) {
  Loaded loaded = probe_plugin(file.path);
  loaded.report.path = file.path;  // the library may be known by another link to it
  return loaded;
}

// Of plugins of one name those in the first place count, and there may be one. `places` are those of the reports.
void mark_clashes(std::vector<PluginReport>& reports, const std::vector<int>& places) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].name.empty()) continue;
    const auto first = std::ranges::find(reports, reports[i].name, &PluginReport::name);
    if (places[static_cast<std::size_t>(first - reports.begin())] != places[i]) {
      reports[i].status = PluginStatus::shadowed;
      reports[i].detail =
          "left out: '" + reports[i].name + "' is " + first->path.string() + ", which is searched first";
      continue;
    }
    std::vector<std::string> others;
    for (std::size_t j = 0; j < reports.size(); ++j) {
      if (j != i && places[j] == places[i] && reports[j].name == reports[i].name) {
        others.push_back(reports[j].path.string());
      }
    }
    if (others.empty()) continue;
    reports[i].status = PluginStatus::name_clash;
    reports[i].detail = "name '" + reports[i].name + "' is also that of " + join(others, " and ") +
                        "; remove all but one of them from where plugins are looked for";
  }
}

}  // namespace

PluginRegistry::PluginRegistry(const std::vector<std::filesystem::path>& extra) {
  std::vector<int> places;
  for (Candidate& candidate : discover(extra)) {
    places.push_back(candidate.place);
    Loaded loaded;
    if (candidate.problem.empty()) {
      loaded = open_plugin(candidate.path);
      loaded.report.path = candidate.path;
    } else {
      loaded.report.path = std::move(candidate.path);
      loaded.report.status = PluginStatus::not_a_plugin;
      loaded.report.detail = std::move(candidate.problem);
    }
    files_.push_back(std::move(loaded.report));
  }
  mark_clashes(files_, places);
}

PluginRegistry::~PluginRegistry() = default;

std::vector<PluginReport> PluginRegistry::reports() const {
  std::vector<PluginReport> result;
  for (const PluginReport& file : files_) {
    result.push_back(file.status == PluginStatus::ok ? probe(file).report : file);
  }
  return result;
}

std::shared_ptr<const Plugin> PluginRegistry::find(const std::string& name, const std::string& needed_by) const {
  const std::string what = "backend '" + name + "'" + (needed_by.empty() ? "" : ", the base of '" + needed_by + "',");
  std::optional<PluginReport> refused;
  for (const PluginReport& file : files_) {
    if (file.name != name) continue;
    if (file.status != PluginStatus::ok) {
      if (!refused) refused = file;
      continue;
    }
    Loaded loaded = probe(file);
    if (loaded.plugin != nullptr) return loaded.plugin;
    refused = std::move(loaded.report);
  }
  if (refused) {
    const bool by_path = refused->status == PluginStatus::name_clash && needed_by.empty();
    fail(what + " can't serve: " + describe(*refused) + (by_path ? ", or name the backend by its path" : ""));
  }

  // A file that did not load has no name; its file name says what it would have been.
  for (const PluginReport& file : files_) {
    if (file.name.empty() && file.path.filename() == "libgpunn_backend_" + name + ".so") {
      fail(what + " can't serve: " + describe(file));
    }
  }
  std::vector<std::string> working;
  std::vector<std::string> others;
  for (const PluginReport& report : reports()) {
    if (report.status == PluginStatus::ok) {
      working.push_back(report.name);
    } else {
      others.push_back(describe(report));
    }
  }
  std::string message = what + " was not found";
  message += working.empty() ? "; no plugin works here" : did_you_mean_or_list(name, working);
  if (!others.empty()) message += "; files that can't serve: " + join(others, "; ");
  fail(message +
       ". Plugins are looked for in the experiment's 'plugins', GPUNN_PLUGIN_PATH and beside libgpunn; "
       "'gpunn plugins' lists them");
}

std::string PluginRegistry::notice(const Plugin& plugin) const {
  const auto first = std::ranges::find(files_, plugin.name(), &PluginReport::name);
  if (first == files_.end() || first->path != plugin.path()) return {};
  std::vector<std::string> shadowed;
  for (const PluginReport& file : files_) {
    if (file.name == plugin.name() && file.status == PluginStatus::shadowed) shadowed.push_back(file.path.string());
  }
  if (shadowed.empty()) return {};
  return "plugin '" + plugin.name() + "' is " + first->path.string() + ", which is searched first; left out is " +
         join(shadowed, " and ");
}

PluginRegistry::Chain PluginRegistry::chain_of(std::shared_ptr<const Plugin> top) const {
  Chain chain{std::move(top)};
  while (!chain.back()->base().empty()) {
    auto base = find(chain.back()->base(), chain.back()->name());
    std::vector<std::string> names;
    for (const auto& plugin : chain) names.push_back(plugin->name());
    if (std::find(names.begin(), names.end(), base->name()) != names.end()) {
      names.push_back(base->name());
      fail("backend '" + chain.front()->name() + "' can't serve: its bases form a cycle, " + join(names, " -> ") +
           "; one of them has to do without a base, or to have another name");
    }
    chain.push_back(std::move(base));
  }
  return chain;
}

PluginRegistry::Chain PluginRegistry::best_chain() const {
  std::vector<PluginReport> candidates = files_;
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &PluginReport::priority);
  std::vector<std::string> reasons;
  for (const PluginReport& file : candidates) {
    if (file.status != PluginStatus::ok) {
      reasons.push_back(describe(file));
      continue;
    }
    const Loaded loaded = probe(file);
    if (loaded.plugin == nullptr) {
      reasons.push_back(describe(loaded.report));
      continue;
    }
    try {
      return chain_of(loaded.plugin);
    } catch (const Error& error) {
      reasons.emplace_back(error.what());
    }
  }
  fail("no backend works here: " + (reasons.empty() ? "no plugin was found beside libgpunn, in GPUNN_PLUGIN_PATH or in "
                                                      "the experiment's 'plugins'"
                                                    : join(reasons, "; ")));
}

void PluginRegistry::insert_alternatives(Chain& chain) const {
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    auto place = static_cast<std::ptrdiff_t>(i) + 1;
    for (const std::string& name : chain[i]->alternatives()) {
      const auto is_it = [&](const auto& known) { return known->name() == name; };
      if (std::ranges::any_of(chain, is_it)) continue;
      for (const PluginReport& file : files_) {
        if (file.name != name || file.status != PluginStatus::ok) continue;
        Loaded loaded = probe(file);
        if (loaded.plugin == nullptr) continue;
        chain.insert(chain.begin() + place++, std::move(loaded.plugin));
        break;
      }
    }
  }
}

PluginRegistry::Chain PluginRegistry::chain(const std::string& name, Alternatives alternatives) const {
  if (alternatives == Alternatives::included) {
    Chain result = chain(name);
    insert_alternatives(result);
    return result;
  }
  if (name == "auto") return best_chain();
  if (!is_path(name)) return chain_of(find(name, ""));

  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(name, error).lexically_normal();
  if (!std::filesystem::exists(file, error)) fail("backend '" + name + "': there is no file " + file.string());
  Loaded loaded = probe_plugin(file);
  if (loaded.plugin == nullptr) {
    loaded.report.path = file;
    fail("backend '" + name + "' can't serve: " + describe(loaded.report));
  }
  return chain_of(std::move(loaded.plugin));
}

}  // namespace gpunn::plugins

namespace gpunn {

std::vector<PluginReport> list_plugins(const std::vector<std::filesystem::path>& extra) {
  return plugins::PluginRegistry(extra).reports();
}

}  // namespace gpunn
