#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::training {

// What tensors that come from elsewhere are called here: the rows of a YAML file, "layer*.*.conv1.*: stage*.*.conv1.*".
// A `*` stands for one or more characters other than '.', at most one between two dots; those of the right are, in
// order, what those of the left stood for. The first row that fits is taken; what no row fits keeps its name.
class NameTable {
 public:
  NameTable() = default;
  // Throws ConfigError with the place of every row that is wrong, and Error(missing) without the file.
  static NameTable load(const std::filesystem::path& file);
  static NameTable parse(std::string_view text, const std::string& origin);

  std::string rename(std::string_view name) const;
  bool has_row(std::string_view name) const;  // that rename() goes by
  // The other way round: what rename() makes `name` of, by the first row that leads there; `name` itself where no row
  // does and rename() keeps it. Nothing where a row renames it away, or the name there was lost in a * without a place
  // on the right.
  std::optional<std::string> original(std::string_view name) const;

 private:
  struct Row {
    std::vector<std::string> from;  // the parts between dots
    std::string to;
  };
  // The first that fits, with what its stars stand for; null where none does.
  const Row* find_row(std::string_view name, std::vector<std::string>& stars) const;

  std::vector<Row> rows_;
};

}  // namespace gpunn::training
