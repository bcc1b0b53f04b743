#include "data/segmentation/colour_table.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;
using InOrder = nlohmann::ordered_json;  // of the file's members

namespace {

constexpr std::size_t kMostClasses = 255;  // 255 is for ignored pixels

uint32_t packed(const Rgb& colour) {
  return static_cast<uint32_t>(colour[0]) << 16 | static_cast<uint32_t>(colour[1]) << 8 | colour[2];
}

std::string text_of(const Rgb& colour) {
  return "(" + std::to_string(colour[0]) + ", " + std::to_string(colour[1]) + ", " + std::to_string(colour[2]) + ")";
}

// What lies between commas or semicolons, if the line has any, else between blanks and tabs. Quotes are left out.
std::vector<std::string> fields_of(std::string_view line) {
  constexpr std::string_view kAround = " \t\r\"";
  std::string_view separator = " \t";
  for (const std::string_view other : {",", ";"}) {
    if (line.find(other) != std::string_view::npos) separator = other;
  }
  std::vector<std::string> fields;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find_first_of(separator), line.size());
    const std::string_view field = line.substr(0, end);
    const std::size_t first = field.find_first_not_of(kAround);
    if (first != std::string_view::npos) {
      fields.emplace_back(field.substr(first, field.find_last_not_of(kAround) - first + 1));
    }
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

std::optional<uint8_t> byte_of(const std::string& field) {
  unsigned value = 0;
  const char* const end = field.data() + field.size();
  const auto [at, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || at != end || value > std::numeric_limits<uint8_t>::max()) return std::nullopt;
  return static_cast<uint8_t>(value);
}

// Three fields from a place on as a colour.
std::optional<Rgb> colour_at(const std::vector<std::string>& fields, std::size_t first) {
  Rgb colour;
  for (std::size_t i = 0; i < colour.size(); ++i) {
    const std::optional<uint8_t> byte = byte_of(fields[first + i]);
    if (!byte) return std::nullopt;
    colour[i] = *byte;
  }
  return colour;
}

// Whether a line names the columns: the place of red, in front of green and blue.
std::optional<std::size_t> red_column(const std::vector<std::string>& fields) {
  constexpr std::string_view kLetters = "rgb";
  const auto is = [&](std::size_t place, char letter) {
    return (fields[place][0] | 0x20) == letter;  // "r", "Red", "R"
  };
  for (std::size_t i = 0; i + kLetters.size() <= fields.size(); ++i) {
    if (is(i, 'r') && is(i + 1, 'g') && is(i + 2, 'b') && !byte_of(fields[i])) return i;
  }
  return std::nullopt;
}

std::string without(const std::vector<std::string>& fields, std::size_t first) {
  std::vector<std::string> rest(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(first));
  rest.insert(rest.end(), fields.begin() + static_cast<std::ptrdiff_t>(first) + 3, fields.end());
  return join(rest, " ");
}

void read_lines(std::string_view text, const fs::path& file, ColourTable& table) {
  std::optional<std::size_t> red;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::vector<std::string> fields = fields_of(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    const std::string place = file.string() + ":" + std::to_string(++number) + ": ";
    if (fields.empty() || fields[0][0] == '#') continue;
    if (!red && table.names().empty() && (red = red_column(fields))) continue;
    const std::size_t count = fields.size();
    const auto expected = [&]() -> Error {
      return Error(place + "expected a name and three numbers of 0 to 255: red, green and blue; found " +
                   join(fields, " "));
    };
    if (count < 3 || (red && count < *red + 3)) throw expected();
    const std::optional<Rgb> front = colour_at(fields, 0), back = colour_at(fields, count - 3);
    std::size_t first = back ? count - 3 : 0;
    if (red) {
      first = *red;
    } else if (count > 3 && front && back) {
      throw Error(place + "the colour can be read in two ways; name the columns in a first line, such as name,r,g,b");
    }
    const std::optional<Rgb> colour = colour_at(fields, first);
    if (!colour) throw expected();
    try {
      table.add(*colour, without(fields, first));
    } catch (const Error& error) {
      throw Error(place + error.what());
    }
  }
}

std::optional<Rgb> colour_of(const InOrder& value) {
  if (!value.is_array() || value.size() < 3 || value.size() > 4) return std::nullopt;  // a fourth one is opacity
  Rgb colour;
  for (std::size_t i = 0; i < colour.size(); ++i) {
    if (!value[i].is_number_integer() || value[i] < 0 || value[i] > std::numeric_limits<uint8_t>::max()) {
      return std::nullopt;
    }
    colour[i] = value[i].get<uint8_t>();
  }
  return colour;
}

void read_json(const InOrder& value, ColourTable& table, int depth = 0) {
  constexpr int kMostDepth = 8;
  if (depth > kMostDepth) return;
  if (value.is_array()) {
    for (const InOrder& one : value) read_json(one, table, depth + 1);
  } else if (value.is_object()) {
    const auto name = value.find("name");
    for (const auto& [key, member] : value.items()) {
      if (const std::optional<Rgb> colour = colour_of(member)) {
        table.add(*colour, name != value.end() && name->is_string() ? name->get<std::string>() : key);
      } else {
        read_json(member, table, depth + 1);
      }
    }
  }
}

}  // namespace

void ColourTable::add(const Rgb& colour, const std::string& name) {
  const std::string known = name.empty() ? std::to_string(names_.size()) : name;
  const auto place = static_cast<std::size_t>(std::ranges::find(names_, known) - names_.begin());
  if (place == names_.size()) {
    if (names_.size() == kMostClasses) throw Error("more than 255 classes, which is the most of a label map");
    names_.push_back(known);
  }
  const auto [at, is_new] = classes_.emplace(packed(colour), static_cast<uint8_t>(place));
  if (!is_new && at->second != place) {
    throw Error("the colour " + text_of(colour) + " is of two classes: " + names_[at->second] + " and " + known);
  }
}

std::optional<uint8_t> ColourTable::class_of(const Rgb& colour) const {
  const auto found = classes_.find(packed(colour));
  return found == classes_.end() ? std::nullopt : std::optional(found->second);
}

std::string ColourTable::unknown(const Rgb& colour) const {
  const auto distance = [&](uint32_t other) {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
      const int apart = colour[static_cast<std::size_t>(i)] - static_cast<int>(other >> (16 - 8 * i) & 0xFF);
      sum += apart * apart;
    }
    return sum;
  };
  std::string text = text_of(colour) + ", which is not in " + (file_.empty() ? "the table" : file_.string());
  const auto nearest = std::ranges::min_element(
      classes_, {}, [&](const auto& one) { return std::pair(distance(one.first), one.first); });
  if (nearest != classes_.end()) {
    const uint32_t rgb = nearest->first;
    const Rgb known = {static_cast<uint8_t>(rgb >> 16), static_cast<uint8_t>(rgb >> 8), static_cast<uint8_t>(rgb)};
    text += "; the nearest colour there is " + text_of(known) + ", " + names_[nearest->second];
  }
  return text;
}

ColourTable read_colour_table(const fs::path& file) {
  const std::string text = files::read_text(file);
  ColourTable table;
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && (text[start] == '{' || text[start] == '[')) {
    try {
      read_json(InOrder::parse(text), table);
    } catch (const InOrder::exception& error) {
      throw Error(file.string() + ": no sound JSON: " + error.what());
    } catch (const Error& error) {
      throw Error(file.string() + ": " + error.what());
    }
  } else {
    read_lines(text, file, table);
  }
  if (table.names().empty()) {
    throw Error(file.string() + ": no colour; expected a name, red, green and blue on each line, or a JSON file");
  }
  table.file_ = file;
  return table;
}

}  // namespace gpunn::data
