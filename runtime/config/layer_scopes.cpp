#include "config/layer_scopes.hpp"

#include <gpunn/words.hpp>

#include <utility>

#include "common/text.hpp"

namespace gpunn::config {

LayerScopes::LayerScopes(const std::vector<InputSpec>& inputs) {
  scopes_.emplace_back();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SourceData source;
    source.place = input_source(i);
    sources_.push_back(std::move(source));
    declare(kModel, inputs[i].name, i);
  }
}

LayerScopes::Scope LayerScopes::open_block(const std::string& prefix, const std::string& block, Source input) {
  ScopeData scope;
  scope.prefix = prefix;
  scope.block = block;
  scope.input = input;
  scopes_.push_back(std::move(scope));
  return scopes_.size() - 1;
}

LayerScopes::Scope LayerScopes::open_branch(Scope parent, const std::string& prefix) {
  ScopeData scope;
  scope.parent = parent;
  scope.prefix = prefix;
  scope.block = scopes_[parent].block;
  scopes_.push_back(std::move(scope));
  return scopes_.size() - 1;
}

LayerScopes::Scope LayerScopes::open_round(Scope parent, const std::string& suffix) {
  ScopeData scope;
  scope.parent = parent;
  scope.prefix = scopes_[parent].prefix;
  scope.suffix = scopes_[parent].suffix + suffix;
  scope.block = scopes_[parent].block;
  scope.round = true;
  scopes_.push_back(std::move(scope));
  return scopes_.size() - 1;
}

std::string LayerScopes::full_name(Scope scope, const std::string& name) const {
  return scopes_[scope].prefix + name + scopes_[scope].suffix;
}

LayerScopes::Scope LayerScopes::without_rounds(Scope scope) const {
  while (scopes_[scope].round) scope = *scopes_[scope].parent;
  return scope;
}

LayerScopes::Source LayerScopes::layer(std::size_t index) {
  SourceData source;
  source.place = static_cast<int>(index);
  sources_.push_back(std::move(source));
  return sources_.size() - 1;
}

LayerScopes::Source LayerScopes::named(Scope scope, const std::string& name, const SourceLocation& where, User user) {
  SourceData source;
  source.state = SourceData::State::open;
  source.scope = scope;
  source.name = name;
  source.user = std::move(user);
  source.where = where;
  sources_.push_back(std::move(source));
  return sources_.size() - 1;
}

void LayerScopes::declare(Scope scope, const std::string& name, Source output, std::optional<Scope> inside) {
  scopes_[scope].names.emplace(name, Named{output, inside});
  if (!scopes_[scope].round) return;
  const std::string suffixed = name + scopes_[scope].suffix;
  scopes_[without_rounds(scope)].names.emplace(suffixed, Named{output, inside});
}

// "name", or "name.rest" with `rest` inside what `name` is.
const LayerScopes::Named* LayerScopes::look_up(Scope scope, const std::string& name) const {
  std::string rest = name;
  while (true) {
    const auto& names = scopes_[scope].names;
    if (const auto whole = names.find(rest); whole != names.end()) return &whole->second;
    const std::size_t dot = rest.find('.');
    if (dot == std::string::npos) return nullptr;
    const auto outer = names.find(rest.substr(0, dot));
    if (outer == names.end() || !outer->second.inside) return nullptr;
    scope = *outer->second.inside;
    rest = rest.substr(dot + 1);
  }
}

std::optional<LayerScopes::Source> LayerScopes::find(Scope scope, const std::string& name) const {
  while (true) {
    if (const Named* found = look_up(scope, name)) return found->output;
    if (!scopes_[scope].parent) break;
    scope = *scopes_[scope].parent;
  }
  return scope != kModel && name == "input" ? std::optional(scopes_[scope].input) : std::nullopt;
}

std::optional<int> LayerScopes::resolve(Source source, Diagnostics& diagnostics) {
  using State = SourceData::State;
  // From name to name: a branch that is left out is what it comes from.
  std::vector<Source> path;
  std::optional<int> result;
  for (Source at = source;;) {
    SourceData& data = sources_[at];
    if (data.state == State::known) result = data.place;
    if (data.state == State::known || data.state == State::unknown) break;
    if (data.state == State::visiting) {
      std::vector<std::string> names;
      for (const Source step : path) names.push_back(sources_[step].name);
      diagnostics.add(data.where,
                      "these come from each other, and none from a layer: " + join(names, " -> ") + data.user.origin);
      break;
    }
    data.state = State::visiting;
    path.push_back(at);
    const std::optional<Source> next = find(data.scope, data.name);
    if (!next) {
      report(data, diagnostics);
      break;
    }
    at = *next;
  }
  for (const Source step : path) {
    sources_[step].state = result ? State::known : State::unknown;
    sources_[step].place = result.value_or(input_source(0));
  }
  return result;
}

void LayerScopes::report(const SourceData& source, Diagnostics& diagnostics) {
  const std::string& block = scopes_[source.scope].block;
  if (block.empty() && source.user.title.empty()) return;
  if (!reported_.emplace(source.where.line, source.where.column).second) return;
  std::vector<std::string> names;
  if (!block.empty()) names.emplace_back("input");
  for (std::optional<Scope> scope = source.scope; scope; scope = scopes_[*scope].parent) {
    for (const auto& [name, named] : scopes_[*scope].names) names.push_back(name);
  }
  const std::string what =
      source.user.title + " comes from " + in_quotes(source.name) + ", which no layer " +
      (block.empty() ? "is called" : "of the block " + in_quotes(block) + " is called (a block sees what is in it)");
  diagnostics.add(source.where, what + did_you_mean_or_list(source.name, names) + source.user.origin);
}

}  // namespace gpunn::config
