#pragma once

#include <gpunn/error.hpp>
#include <gpunn/model_spec.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/model_order.hpp"

namespace gpunn::config {

// Names in a list of layers, and where data comes from. The model, each use of a block, each branch and each round of a
// repeat is a scope; names may stand further down in the file, so they are looked up when all of it is read.
class LayerScopes {
 public:
  using Scope = std::size_t;
  using Source = std::size_t;  // an input of the model, a layer's output, or a name that stands for one of them
  static constexpr Scope kModel = 0;
  static constexpr Source kInput = 0;  // the first

  explicit LayerScopes(const std::vector<InputSpec>& inputs);

  Scope open_block(const std::string& prefix, const std::string& block, Source input);  // sees nothing outside
  Scope open_branch(Scope parent, const std::string& prefix);
  // Names in it get the suffix and belong to the scope around it as well.
  Scope open_round(Scope parent, const std::string& suffix);

  const std::string& prefix(Scope scope) const { return scopes_[scope].prefix; }
  std::string full_name(Scope scope, const std::string& name) const;
  Scope without_rounds(Scope scope) const;  // itself, or what the rounds that it is are in

  Source layer(std::size_t index);
  // The layer that refers to a name: "add 'sum'", and the end of a message about it.
  struct User {
    std::string title, origin;
  };
  // The meaning of `name` in the scope.
  Source named(Scope scope, const std::string& name, const SourceLocation& where, User user);
  // `inside` is the scope in which "name.rest" is looked up, if there is one.
  void declare(Scope scope, const std::string& name, Source output, std::optional<Scope> inside = std::nullopt);

  // A place, as LayerOrder has them. Empty if no layer has the name. That is reported here, except for names of the
  // model's own scope, which order_layers reports.
  std::optional<int> resolve(Source source, Diagnostics& diagnostics);

 private:
  struct Named {
    Source output = kInput;
    std::optional<Scope> inside;
  };
  struct ScopeData {
    std::optional<Scope> parent;
    std::string prefix, suffix;
    std::string block;  // whose inside this is; empty: the model's
    Source input = kInput;
    bool round = false;
    std::map<std::string, Named> names;
  };
  struct SourceData {
    enum class State { open, visiting, known, unknown };
    State state = State::known;
    int place = input_source(0);
    Scope scope = kModel;  // this and what follows: of a name
    std::string name;
    User user;
    SourceLocation where;
  };

  const Named* look_up(Scope scope, const std::string& name) const;
  std::optional<Source> find(Scope scope, const std::string& name) const;
  void report(const SourceData& source, Diagnostics& diagnostics);

  std::vector<ScopeData> scopes_;
  std::vector<SourceData> sources_;
  std::set<std::pair<int, int>> reported_;  // lines and columns: a block's mistake is one in all of its uses
};

}  // namespace gpunn::config
