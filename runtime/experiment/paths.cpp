#include "experiment/paths.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/checked_backends.hpp"
#include "experiment/schema.hpp"

namespace gpunn::config {

namespace fs = std::filesystem;

namespace {

using Kind = YamlNode::Kind;

class PathResolver {
 public:
  explicit PathResolver(const fs::path& folder) : folder_(folder) {}

  void resolve(const std::string& name, YamlNode& node) {
    const bool is_model = name == "model.file";
    const Key* key = find_key(name);
    const bool is_path = key != nullptr && (key->type == ValueType::path || key->type == ValueType::paths);
    if (name == "runs" || !(is_model || is_path || name == "backend")) return;
    for (YamlNode& item : node.items) resolve(name, item);
    if (node.kind != Kind::scalar || node.scalar.empty()) return;
    std::string found = node.scalar;
    const auto make_absolute = [&](std::string& path) { path = absolute(from_here(path)); };
    if (name == "backend") {
      // A backend is a name or the file of a plugin, and a name holds no '/' or '.'.
      resolve_backend(found, [&](std::string& backend) {
        if (backend.find_first_of("/.") != std::string::npos) make_absolute(backend);
      });
    } else {
      make_absolute(found);
    }
    words_[{node.where.line, node.where.column}] = {node.scalar, found};
    node.scalar = is_model ? from_here(node.scalar).string() : found;
  }

  std::string in_text(std::string text) const {
    for (const auto& [place, word] : words_) {
      std::size_t at = 0;
      for (int line = 1; line < place.first; ++line) at = text.find('\n', at) + 1;
      at = std::min(at + static_cast<std::size_t>(place.second - 1), text.size());
      for (const char* quote : {"", "'", "\""}) {
        const std::string given = quote + word.first + quote;
        if (word.first == word.second || !std::string_view(text).substr(at).starts_with(given)) continue;
        text.replace(at, given.size(), yaml_text(word.second));
        break;
      }
    }
    return text;
  }

 private:
  fs::path from_here(const std::string& path) const { return (folder_ / path).lexically_normal(); }

  static std::string absolute(const fs::path& path) {
    std::error_code failed;
    const fs::path result = fs::absolute(path, failed);
    return (failed ? path : result).lexically_normal().string();
  }

  const fs::path& folder_;
  // By line and column, what the file gives and what it stands for. From the end on, so that a new word moves none that
  // is still to be replaced.
  std::map<std::pair<int, int>, std::pair<std::string, std::string>, std::greater<>> words_;
};

}  // namespace

std::string resolve_paths(YamlNode& experiment, const fs::path& folder, std::string text) {
  PathResolver resolver(folder);
  for (YamlEntry& section : experiment.entries) {
    resolver.resolve(section.key, section.value);
    for (YamlEntry& entry : section.value.entries) resolver.resolve(section.key + "." + entry.key, entry.value);
  }
  return resolver.in_text(std::move(text));
}

}  // namespace gpunn::config
