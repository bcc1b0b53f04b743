#pragma once

#include <filesystem>
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

 private:
  struct Row {
    std::vector<std::string> from;  // the parts between dots
    std::string to;
  };
  std::vector<Row> rows_;
};

}  // namespace gpunn::training
