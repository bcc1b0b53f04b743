// PASCAL VOC's annotations.
#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "common/text.hpp"
#include "data/detection/annotations.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/pack/files.hpp"
#include "data/tables/csv.hpp"
#include "fields/cells.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;
using boost::property_tree::ptree;

namespace {

constexpr std::size_t kMostXmlBytes = std::size_t{16} << 20;
constexpr int kMostDepth = 64;

// The parser calls itself for each element within another.
void require_shallow(std::string_view text, const fs::path& file) {
  int depth = 0;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const char next = at + 1 < text.size() ? text[at + 1] : ' ';
    const std::size_t end = text.find('>', at);
    if (next == '!' || next == '?') continue;
    if (next == '/') {
      --depth;
    } else if (end == std::string_view::npos || text[end - 1] != '/') {
      ++depth;
    }
    if (depth > kMostDepth) {
      throw Error(file.string() + ": elements lie within each other more than " + std::to_string(kMostDepth) +
                  " deep; expected an annotation of PASCAL VOC");
    }
  }
}

ptree parse(const fs::path& file) {
  const std::string text = files::read_text(file, kMostXmlBytes);
  require_shallow(text, file);
  std::istringstream in(text);
  ptree tree;
  try {
    boost::property_tree::read_xml(in, tree, boost::property_tree::xml_parser::trim_whitespace);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw Error(file.string() + ":" + std::to_string(error.line()) + ": no sound XML: " + error.message());
  }
  return tree;
}

// The number in an element, or Error.
double number_in(const ptree& parent, const char* name, const std::string& where) {
  const auto text = parent.get_optional<std::string>(name);
  if (!text) throw Error(where + ": the element <" + name + "> is missing");
  const std::optional<double> number = fields::number_of(*text);
  if (!number) throw Error(where + ": <" + name + ">: expected a number, found " + in_quotes(*text));
  return *number;
}

fs::path image_of(const fs::path& folder, const std::string& stem, const std::string& file_name) {
  for (const char* ending : {".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG", ".ppm", ".pgm"}) {
    fs::path file = folder / (stem + ending);
    if (files::is_file(file)) return file;
  }
  const fs::path named = folder / fs::path(file_name).filename();
  return !file_name.empty() && is_image_name(named) && files::is_file(named) ? named : fs::path();
}

std::vector<std::string> listed(const fs::path& list) {
  std::vector<std::string> stems;
  std::istringstream lines(files::read_text(list));
  std::set<std::string> known;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::string stem;
    if (!(std::istringstream(line) >> stem)) continue;
    if (!known.insert(stem).second) {
      throw Error(list.string() + ":" + std::to_string(number) + ": the image " + in_quotes(stem) +
                  " is listed twice; take one out");
    }
    stems.push_back(stem);
  }
  return stems;
}

std::vector<std::string> xml_stems(const fs::path& folder) {
  std::vector<std::string> stems;
  files::each_file_beneath(folder, [&](const fs::path& file) {
    if (file.extension() == ".xml" && file.parent_path() == folder) stems.push_back(file.stem().string());
  });
  std::ranges::sort(stems);
  return stems;
}

}  // namespace

AnnotatedImage read_voc_file(const fs::path& file) {
  const ptree tree = parse(file);
  const auto root = tree.get_child_optional("annotation");
  if (!root) throw Error(file.string() + ": no element <annotation>; expected an annotation of PASCAL VOC");
  AnnotatedImage image{.file = fs::path(root->get("filename", std::string())), .place = file.string()};
  if (root->get_child_optional("size")) {
    image.width = static_cast<int64_t>(number_in(*root, "size.width", file.string()));
    image.height = static_cast<int64_t>(number_in(*root, "size.height", file.string()));
  }
  int64_t number = 0;
  for (const auto& [name, object] : *root) {
    if (name != "object") continue;
    const std::string where = file.string() + ": object " + std::to_string(++number);
    NamedBox box;
    box.category = object.get("name", std::string());
    if (box.category.empty()) throw Error(where + ": the element <name>, its class, is missing or empty");
    box.box = {number_in(object, "bndbox.xmin", where), number_in(object, "bndbox.ymin", where),
               number_in(object, "bndbox.xmax", where), number_in(object, "bndbox.ymax", where)};
    box.difficult = object.get("difficult", std::string("0")) == "1";
    image.boxes.push_back(std::move(box));
  }
  return image;
}

Annotations read_voc(const fs::path& annotations, const fs::path& images, const fs::path& list) {
  Annotations result;
  const std::vector<std::string> stems = list.empty() ? xml_stems(annotations) : listed(list);
  if (stems.empty()) {
    throw Error((list.empty() ? annotations : list).string() + (list.empty() ? ": no XML files" : ": no names") +
                    " there; expected a file NAME.xml for each image",
                ExitCode::missing);
  }
  std::vector<std::string> without_xml, without_image, again;
  std::set<fs::path> taken;
  for (const std::string& stem : stems) {
    const fs::path xml = annotations / (stem + ".xml");
    if (!files::is_file(xml)) {
      without_xml.push_back(stem);
      continue;
    }
    AnnotatedImage image = read_voc_file(xml);
    image.file = image_of(images, stem, image.file.string());
    if (image.file.empty()) {
      without_image.push_back(xml.filename().string());
      continue;
    }
    if (!taken.insert(image.file).second) {
      again.push_back(xml.filename().string());
      continue;
    }
    result.images.push_back(std::move(image));
  }
  if (!without_xml.empty()) {
    result.notes.push_back(named_count(without_xml, "image has no annotation and is left out",
                                       "images have no annotation and are left out"));
  }
  if (!without_image.empty()) {
    result.notes.push_back(named_count(without_image, "annotation has no image in " + images.string(),
                                       "annotations have no image in " + images.string()));
  }
  if (!again.empty()) {
    result.notes.push_back(named_count(again, "annotation is of an image that another one is of, and left out",
                                       "annotations are of images that others are of, and left out"));
  }
  if (list.empty()) {  // else images of other lists would count
    const std::set<std::string> known(stems.begin(), stems.end());
    std::vector<std::string> alone;
    for (const fs::path& file : images_beneath(images)) {
      if (!known.contains(file.stem().string())) alone.push_back(file.filename().string());
    }
    if (!alone.empty()) {
      result.notes.push_back(
          named_count(alone, "image has no annotation and is left out", "images have no annotation and are left out"));
    }
  }
  return result;
}

}  // namespace gpunn::data
