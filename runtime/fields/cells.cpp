#include "fields/cells.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>

#include "common/parse_number.hpp"
#include "common/text.hpp"

namespace gpunn::fields {

namespace {

constexpr std::size_t kLongestShown = 40;

}  // namespace

std::optional<double> number_of(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const std::optional<double> value = parse_number<double>(cell);
  if (!value || !std::isfinite(static_cast<float>(*value))) return std::nullopt;
  return value;
}

std::string shown(const std::string& cell) {
  return cell.size() <= kLongestShown ? in_quotes(cell) : in_quotes(cell.substr(0, kLongestShown) + "...");
}

std::vector<std::string> sorted_names(std::vector<std::string> different) {
  std::ranges::sort(different);
  if (std::ranges::all_of(different, [](const auto& name) { return parse_number<int64_t>(name).has_value(); })) {
    std::ranges::stable_sort(different, {}, [](const auto& name) { return *parse_number<int64_t>(name); });
  }
  return different;
}

NameIndex::NameIndex(const std::vector<std::string>& names) : names_(names) {
  for (std::size_t i = 0; i < names.size(); ++i) places_.emplace_back(names[i], static_cast<int32_t>(i));
  std::ranges::sort(places_);
}

int32_t NameIndex::of(const std::string& name, const char* what, const std::filesystem::path& file,
                      int64_t line) const {
  const auto found =
      std::ranges::lower_bound(places_, std::string_view(name), {}, &std::pair<std::string_view, int32_t>::first);
  if (found != places_.end() && found->first == name) return found->second;
  throw Error(file.string() + ":" + std::to_string(line) + ": the " + what + " " + shown(name) +
              " is not among those of the training samples" + did_you_mean_or_list(name, names_));
}

}  // namespace gpunn::fields
