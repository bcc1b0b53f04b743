#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpunn::cli {

// A line with a bar: "head [#####.....]  50%  first  second".
struct ProgressLine {
  std::string head;
  std::optional<double> share;          // finished share, from 0 to 1; without one there is no bar
  std::vector<std::string> parts;       // most important first: the last ones are dropped if the line is too narrow
  std::vector<std::size_t> order = {};  // order of the parts in the line; empty: as given

  // In at most `width` columns. Block characters only where `utf8`.
  std::string text(std::size_t width, bool utf8) const;
};

}  // namespace gpunn::cli
