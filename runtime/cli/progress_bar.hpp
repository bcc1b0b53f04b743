#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpunn::cli {

// A line with a bar: "head [#####.....]  50%  first  second".
struct ProgressLine {
  std::string head;
  std::optional<double> share;          // done, from 0 to 1; without one there is no bar
  std::vector<std::string> parts;       // the most important first: the last are left out where there is no room
  std::vector<std::size_t> order = {};  // in which the parts stand; empty: as they are

  // In at most `width` columns. Block characters only where `utf8`.
  std::string text(std::size_t width, bool utf8) const;
};

}  // namespace gpunn::cli
