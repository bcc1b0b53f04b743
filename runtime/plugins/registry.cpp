#include <gpunn/error.hpp>

#include <algorithm>
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

void mark_clashes(std::vector<PluginReport>& reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].name.empty()) continue;
    std::vector<std::string> others;
    for (std::size_t j = 0; j < reports.size(); ++j) {
      if (j != i && reports[j].name == reports[i].name) others.push_back(reports[j].path.string());
    }
    if (others.empty()) continue;
    reports[i].status = PluginStatus::name_clash;
    reports[i].detail = "name '" + reports[i].name + "' is also that of " + join(others, " and ");
  }
}

}  // namespace

PluginRegistry::PluginRegistry(const std::vector<std::filesystem::path>& extra) {
  for (Candidate& candidate : discover(extra)) {
    Loaded loaded;
    if (candidate.problem.empty()) {
      loaded = open_plugin(candidate.path);
      loaded.report.path = candidate.path;
    } else {
      loaded.report.path = std::move(candidate.path);
      loaded.report.status = PluginStatus::not_a_plugin;
      loaded.report.detail = std::move(candidate.problem);
    }
    reports_.push_back(std::move(loaded.report));
    plugins_.push_back(std::move(loaded.plugin));
  }
  mark_clashes(reports_);
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    if (reports_[i].status != PluginStatus::ok) plugins_[i] = nullptr;
  }
}

PluginRegistry::~PluginRegistry() = default;

std::shared_ptr<const Plugin> PluginRegistry::find(const std::string& name, const std::string& needed_by) const {
  const std::string what = "backend '" + name + "'" + (needed_by.empty() ? "" : ", the base of '" + needed_by + "',");
  const PluginReport* refused = nullptr;
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    if (reports_[i].name != name) continue;
    if (plugins_[i] != nullptr) return plugins_[i];
    if (refused == nullptr) refused = &reports_[i];
  }
  if (refused != nullptr) fail(what + " can't serve: " + describe(*refused));

  // A file that did not load has no name; its file name says what it would have been.
  for (const PluginReport& report : reports_) {
    if (report.name.empty() && report.path.filename() == "libgpunn_backend_" + name + ".so") {
      fail(what + " can't serve: " + describe(report));
    }
  }
  std::vector<std::string> working;
  std::vector<std::string> others;
  for (const PluginReport& report : reports_) {
    if (report.status == PluginStatus::ok) {
      working.push_back(report.name);
    } else {
      others.push_back(describe(report));
    }
  }
  std::string message = what + " was not found";
  message += working.empty() ? "; no plugin works here" : suggestion(name, working);
  if (!others.empty()) message += "; files that can't serve: " + join(others, "; ");
  fail(message +
       ". Plugins are looked for in the experiment's 'plugins', GPUNN_PLUGIN_PATH and beside libgpunn; "
       "'gpunn plugins' lists them");
}

PluginRegistry::Chain PluginRegistry::chain_of(std::shared_ptr<const Plugin> top) const {
  Chain chain{std::move(top)};
  while (!chain.back()->base().empty()) {
    auto base = find(chain.back()->base(), chain.back()->name());
    std::vector<std::string> names;
    for (const auto& plugin : chain) names.push_back(plugin->name());
    if (std::find(names.begin(), names.end(), base->name()) != names.end()) {
      names.push_back(base->name());
      fail("backend '" + chain.front()->name() + "' can't serve: its bases form a cycle, " + join(names, " -> "));
    }
    chain.push_back(std::move(base));
  }
  return chain;
}

PluginRegistry::Chain PluginRegistry::best_chain() const {
  Chain best;
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < plugins_.size(); ++i) {
    if (plugins_[i] == nullptr) {
      reasons.push_back(describe(reports_[i]));
      continue;
    }
    try {
      Chain chain = chain_of(plugins_[i]);
      if (best.empty() || chain.front()->table().priority > best.front()->table().priority) best = std::move(chain);
    } catch (const Error& error) {
      reasons.emplace_back(error.what());
    }
  }
  if (!best.empty()) return best;
  fail("no backend works here: " + (reasons.empty() ? "no plugin was found beside libgpunn, in GPUNN_PLUGIN_PATH or in "
                                                      "the experiment's 'plugins'"
                                                    : join(reasons, "; ")));
}

PluginRegistry::Chain PluginRegistry::chain(const std::string& name) const {
  if (name == "auto") return best_chain();
  if (!is_path(name)) return chain_of(find(name, ""));

  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(name, error).lexically_normal();
  if (!std::filesystem::exists(file, error)) fail("backend '" + name + "': there is no file " + file.string());
  Loaded loaded = open_plugin(file);
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
