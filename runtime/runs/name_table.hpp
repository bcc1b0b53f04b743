#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::training {

// A table of tensor names: the rows of a YAML file, "layer*.*.conv1.*: stage*.*.conv1.*", map a file's names to the
// model's. A `*` stands for one or more characters other than '.', at most one between two dots; those on the right
// take, in order, the text of those on the left. The first row that fits counts; a name that no row fits stays the
// same.
class NameTable {
 public:
  NameTable() = default;
  // Throws ConfigError with the place of every row that is wrong, and Error(missing) without the file.
  static NameTable load(const std::filesystem::path& file);
  static NameTable parse(std::string_view text, const std::string& origin);

  std::string rename(std::string_view name) const;
  bool has_row(std::string_view name) const;  // that rename() goes by
  // The inverse: a name that rename() maps to `name`, by the first row that leads there; `name` itself if no row does
  // and rename() keeps it. Empty if a row renames it away, or if a * without a counterpart on the right lost a part of
  // the name.
  std::optional<std::string> original(std::string_view name) const;

 private:
  struct Row {
    std::vector<std::string> from;  // the parts between dots
    std::string to;
  };
  // The first row that fits, with the text of its stars; null if none does.
  const Row* find_row(std::string_view name, std::vector<std::string>& stars) const;

  std::vector<Row> rows_;
};

}  // namespace gpunn::training
