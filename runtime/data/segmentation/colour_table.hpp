#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpunn::data {

using Rgb = std::array<uint8_t, 3>;  // red, green, blue

// The classes that the colours of a label map stand for.
class ColourTable {
 public:
  // Adds a colour. Names are numbered in the order of their first colour; colours of one name are one class. Throws
  // Error if the colour has another class, or if there are more than 255 classes.
  void add(const Rgb& colour, const std::string& name);

  std::optional<uint8_t> class_of(const Rgb& colour) const;
  const std::vector<std::string>& names() const { return names_; }
  // For a message about a colour that is not in the table: the colour, and the nearest one that is.
  std::string unknown(const Rgb& colour) const;

 private:
  std::unordered_map<uint32_t, uint8_t> classes_;
  std::vector<std::string> names_;
  std::filesystem::path file_;
  friend ColourTable read_colour_table(const std::filesystem::path& file);
};

// Reads a table of colours. In a text or CSV file, a line is a name and three numbers, red, green and blue, in front of
// the name or behind it: "road 128 64 128", "128,64,128,road". A first line that names the columns ("name,r,g,b")
// decides on their order. In a JSON file, an object with a name and a list of three numbers is a class, or a member
// {name: [r, g, b]}. Throws Error with the file and line.
ColourTable read_colour_table(const std::filesystem::path& file);

}  // namespace gpunn::data
