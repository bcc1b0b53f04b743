#include "cli/reports/arena_map.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/terminal/table.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kMostMapRows = 24;

struct Place {
  const PlannedTensor* tensor;
  char letter;
};

// By offset, then by time; the largest ones have letters of their own, the rest share '+'.
std::vector<Place> arena_places(const PlanReport& report) {
  std::vector<Place> places;
  for (const PlannedTensor& tensor : report.tensors) {
    if (tensor.storage == "arena" && tensor.bytes > 0) places.push_back({&tensor, '+'});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.tensor->bytes > b.tensor->bytes; });
  const std::size_t lettered = std::min(places.size(), kLetters.size());
  const auto by_place = [](const Place& a, const Place& b) {
    return std::pair(a.tensor->offset, a.tensor->first_op) < std::pair(b.tensor->offset, b.tensor->first_op);
  };
  std::sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(lettered), by_place);
  for (std::size_t i = 0; i < lettered; ++i) places[i].letter = kLetters[i];
  std::sort(places.begin(), places.end(), by_place);
  return places;
}

std::string drawing(const std::vector<Place>& places, uint64_t arena_bytes, std::size_t ops, std::size_t columns) {
  const std::size_t width = std::clamp<std::size_t>(columns > 14 ? columns - 14 : 1, 1, std::max<std::size_t>(ops, 1));
  const auto rows = static_cast<std::size_t>(std::min<uint64_t>(kMostMapRows, arena_bytes));
  std::string result;
  for (std::size_t row = 0; row < rows; ++row) {
    const uint64_t begin = arena_bytes / rows * row;
    const uint64_t middle = begin + arena_bytes / rows / 2;
    std::string line(width, '.');
    for (const Place& place : places) {
      const PlannedTensor& tensor = *place.tensor;
      if (middle < tensor.offset || middle - tensor.offset >= tensor.bytes) continue;
      for (std::size_t column = 0; column < width; ++column) {
        // Several ops share a column where the step is longer than the line.
        const auto first = static_cast<int64_t>(column * ops / width);
        const auto last = static_cast<int64_t>(std::max((column + 1) * ops / width, column * ops / width + 1)) - 1;
        if (tensor.first_op <= last && tensor.last_op >= first) line[column] = place.letter;
      }
    }
    result += fmt::format("  {:>10}  {}\n", bytes_text(begin), line);
  }
  return result;
}

}  // namespace

std::string arena_map(const PlanReport& report, std::size_t columns) {
  const std::vector<Place> places = arena_places(report);
  if (places.empty() || report.arena_bytes == 0) return "the arena is empty\n";
  Table table(
      {{"  KEY"}, {"OFFSET", Align::right}, {"BYTES", Align::right}, {"OPS", Align::right}, {"TYPE"}, {"TENSOR"}});
  for (const Place& place : places) {
    const PlannedTensor& tensor = *place.tensor;
    table.add({fmt::format("  {}", place.letter), std::to_string(tensor.offset), std::to_string(tensor.bytes),
               fmt::format("{}-{}", tensor.first_op, tensor.last_op), to_string(tensor.type), tensor.name});
  }
  return table.text() + fmt::format("\nops from left to right, offsets from top to bottom, '.' is free:\n") +
         drawing(places, report.arena_bytes, report.ops.size(), columns);
}

}  // namespace gpunn::cli
