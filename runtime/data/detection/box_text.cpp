// Boxes in text: YOLO's files beside the images, and a table with a box a line.
#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "common/text.hpp"
#include "data/detection/annotations.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/pack/files.hpp"
#include "data/tables/csv.hpp"
#include "data/tables/table.hpp"
#include "fields/cells.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

// Without a file of names, the largest number says how many classes there are.
constexpr double kMostYoloClasses = 65536;

// "a/images/b/1.jpg" has its boxes in "a/labels/b/1.txt" or, if that is not there, beside it.
fs::path label_file(const fs::path& image) {
  std::vector<fs::path> parts(image.begin(), image.end());
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i] != "images") continue;
    parts[i] = "labels";
    fs::path file;
    for (const fs::path& part : parts) file /= part;
    file.replace_extension(".txt");
    if (files::is_file(file)) return file;
    break;
  }
  fs::path beside = image;
  return beside.replace_extension(".txt");
}

NamedBox yolo_box(const std::string& line, const std::vector<std::string>& classes, const std::string& where) {
  std::istringstream fields(line);
  std::vector<double> numbers;
  for (std::string field; fields >> field;) {
    const std::optional<double> number = fields::number_of(field);
    if (!number) throw Error(where + ": expected numbers, found " + in_quotes(field));
    numbers.push_back(*number);
  }
  if (numbers.size() != 5) {
    throw Error(where + ": expected 5 numbers, class x y width height, found " + std::to_string(numbers.size()));
  }
  const double number = numbers[0];
  const double most = classes.empty() ? kMostYoloClasses : static_cast<double>(classes.size());
  if (number < 0 || number != std::floor(number) || number >= most) {
    throw Error(where + ": there is no class " + line.substr(0, line.find(' ')) +
                (classes.empty() ? "; expected a whole number from 0 to 65535"
                                 : "; there are " + std::to_string(classes.size()) + " names, from 0"));
  }
  const double x = numbers[1], y = numbers[2], w = numbers[3] / 2, h = numbers[4] / 2;
  const auto index = static_cast<std::size_t>(number);
  return {.box = {x - w, y - h, x + w, y + h}, .category = classes.empty() ? std::to_string(index) : classes[index]};
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::istringstream text(files::read_text(file));
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

// The number of a column, by any of its names.
std::size_t column_of(const Table& table, const std::vector<std::string>& names) {
  const std::vector<std::string>& columns = table.columns();
  for (const std::string& name : names) {
    const auto found = std::ranges::find(columns, name);
    if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  }
  throw Error(table.file().string() + ": no column " + in_quotes(names.front()) + "; the columns are " +
              join(columns, ", "));
}

}  // namespace

Annotations read_yolo(const fs::path& images, const fs::path& names, const std::vector<fs::path>& apart) {
  Annotations result;
  if (!names.empty()) {
    for (const std::string& line : lines_of(names)) {
      if (!line.empty()) result.classes.push_back(line);
    }
  }
  std::vector<std::string> without;
  int64_t most = -1;
  for (const fs::path& file : images_beneath(images, apart)) {
    const fs::path label = label_file(file);
    if (!files::is_file(label)) {
      without.push_back(file.filename().string());
      continue;
    }
    AnnotatedImage image{.file = file, .place = label.string(), .relative = true};
    int64_t number = 0;
    for (const std::string& line : lines_of(label)) {
      ++number;
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      image.boxes.push_back(yolo_box(line, result.classes, label.string() + ":" + std::to_string(number)));
      if (names.empty()) most = std::max(most, static_cast<int64_t>(std::stoll(image.boxes.back().category)));
    }
    result.images.push_back(std::move(image));
  }
  for (int64_t i = 0; i <= most; ++i) result.classes.push_back(std::to_string(i));
  if (!without.empty()) {
    result.notes.push_back(
        named_count(without, "image has no annotation and is left out", "images have no annotation and are left out"));
  }
  return result;
}

Annotations read_box_table(const fs::path& file, const fs::path& images) {
  Table table(file, true, Delimiter::comma);
  const std::size_t name = column_of(table, {"filename", "file", "image"});
  const std::size_t category = column_of(table, {"class", "label", "name"});
  const std::array<std::size_t, 4> corners = {column_of(table, {"xmin", "left"}), column_of(table, {"ymin", "top"}),
                                              column_of(table, {"xmax", "right"}),
                                              column_of(table, {"ymax", "bottom"})};
  Annotations result;
  std::map<std::string, std::size_t> places;
  std::set<std::string> missing;
  for (std::vector<std::string> fields; table.next(fields);) {
    const fs::path image = images / fields[name];
    if (!files::is_file(image)) {
      missing.insert(fields[name]);
      continue;
    }
    std::array<double, 4> values = {};
    for (std::size_t i = 0; i < corners.size(); ++i) {
      const std::optional<double> number = fields::number_of(fields[corners[i]]);
      if (!number) {
        table.fail(table.column(corners[i]) + ": expected a number, found " + in_quotes(fields[corners[i]]));
      }
      values[i] = *number;
    }
    if (fields[category].empty()) table.fail("the class, " + table.column(category) + ", is empty");
    const auto [place, is_new] = places.emplace(fields[name], result.images.size());
    if (is_new) {
      result.images.push_back({.file = image, .place = file.string() + ":" + std::to_string(table.line())});
    }
    result.images[place->second].boxes.push_back(
        {.box = {values[0], values[1], values[2], values[3]}, .category = fields[category]});
  }
  if (!missing.empty()) {
    result.notes.push_back(named_count({missing.begin(), missing.end()},
                                       "annotation has no image in " + images.string(),
                                       "annotations have no image in " + images.string()));
  }
  return result;
}

}  // namespace gpunn::data
