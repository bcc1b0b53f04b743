// Boxes and label maps as COCO's evaluators read results.
#include <gpunn/detection.hpp>
#include <gpunn/segmentation.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "common/text.hpp"
#include "data/detection/annotations.hpp"
#include "runs/model_info.hpp"
#include "runs/trained_model.hpp"

namespace gpunn {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The ids of one file of annotations.
struct KnownIds {
  fs::path file;
  std::vector<int64_t> categories;            // by class
  std::map<std::string, std::string> images;  // by file_name, as JSON
  std::map<std::string, std::vector<std::string>> by_last_name;

  // The longest end of the path that the file lists; else the only image whose last name is the same.
  std::optional<std::string> id_of(const fs::path& image) const {
    const std::string path = fs::absolute(image).lexically_normal().generic_string();
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      if (const auto found = images.find(path.substr(at + 1)); found != images.end()) return found->second;
    }
    const auto found = by_last_name.find(image.filename().string());
    if (found == by_last_name.end() || found->second.size() != 1) return std::nullopt;
    return found->second.front();
  }
};

// What a result is written with.
struct ResultIds {
  std::string image;  // as JSON
  const std::vector<int64_t>* categories = nullptr;
};

class CocoIds {
 public:
  CocoIds(const ModelInfo& info, std::vector<fs::path> files) : info_(info), waiting_(std::move(files)) {
    std::ranges::reverse(waiting_);
    own_ = info.fields.target().ids;
    for (std::size_t i = own_.size(); i < info.fields.target().names.size(); ++i)
      own_.push_back(static_cast<int64_t>(i) + 1);
  }

  // None if no file lists the image. Files are read when they are needed: those of large sets take seconds.
  std::optional<ResultIds> of(const Prediction& one) {
    if (!one.image_id.empty()) return ResultIds{one.image_id, &own_};
    for (std::size_t i = 0; i < read_.size() || read_next(); ++i) {
      if (const auto id = read_[i]->id_of(one.source)) return ResultIds{*id, &read_[i]->categories};
    }
    return std::nullopt;
  }
  const std::vector<int64_t>& own() const { return own_; }
  bool has_files() const { return !read_.empty() || !waiting_.empty(); }
  std::string file_names() const {
    std::vector<std::string> names;
    for (const auto& one : read_) names.push_back(one->file.string());
    return join(names, " and ");
  }

 private:
  bool read_next() {
    if (waiting_.empty()) return false;
    auto known = std::make_unique<KnownIds>();
    known->file = waiting_.back();
    waiting_.pop_back();
    data::CocoFileIds ids = data::read_coco_ids(known->file);
    known->categories = own_;
    for (std::size_t i = 0; i < info_.fields.target().names.size(); ++i) {
      const auto found = ids.categories.find(info_.fields.target().names[i]);
      if (found != ids.categories.end()) known->categories[i] = found->second;
    }
    known->images = std::move(ids.images);
    for (const auto& [name, id] : known->images) {
      known->by_last_name[fs::path(name).filename().string()].push_back(id);
    }
    read_.push_back(std::move(known));
    return true;
  }

  const ModelInfo& info_;
  std::vector<int64_t> own_;
  std::vector<fs::path> waiting_;  // the next one last
  std::vector<std::unique_ptr<KnownIds>> read_;
};

// The files of the experiment's data that are here: first those of the test data.
std::vector<fs::path> annotations_of(const Experiment& experiment) {
  std::vector<fs::path> named, files;
  if (const auto* boxes = std::get_if<BoxSet>(&experiment.data.kind); boxes != nullptr) {
    if (boxes->format == BoxFormat::coco) named = {boxes->test_boxes, boxes->boxes};
  } else if (const auto* maps = std::get_if<SegmentationSet>(&experiment.data.kind); maps != nullptr) {
    named = {maps->test_instances, maps->instances};
  }
  for (const fs::path& file : named) {
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) files.push_back(file);
  }
  return files;
}

// The number that a file is called by, else its name; as JSON.
std::string id_by_name(const Prediction& one) {
  constexpr std::size_t kMostDigits = 18;
  const std::string stem = fs::path(one.source).stem().string();
  const bool is_number =
      !stem.empty() && stem.size() <= kMostDigits && stem.find_first_not_of("0123456789") == std::string::npos;
  return (is_number ? json(std::stoll(stem)) : json(stem)).dump(-1, ' ', false, json::error_handler_t::replace);
}

// The pixels of each class, as the stuff of COCO is evaluated. A class without a category id is left out.
void add_masks(json& results, const Prediction& one, const ResultIds& ids) {
  if (!one.map) return;
  for (const ClassProbability& share : one.top) {
    const int64_t category = ids.categories->at(static_cast<std::size_t>(share.index));
    if (category < 0) continue;
    results.push_back({{"image_id", json::parse(ids.image)},
                       {"category_id", category},
                       {"segmentation",
                        {{"size", {one.map->height, one.map->width}},
                         {"counts", run_lengths_of(*one.map, static_cast<uint8_t>(share.index))}}}});
  }
}

}  // namespace

std::vector<std::string> write_coco_results(const TrainedModel& model, std::span<const Prediction> predictions,
                                            const fs::path& file, const std::vector<fs::path>& annotations) {
  const training::TrainedFile trained = training::read_trained(model.path, model.overrides);
  const ModelInfo info = training::model_info(trained.checkpoint, trained.experiment, trained.file);
  CocoIds ids(info, annotations.empty() ? annotations_of(trained.experiment) : annotations);
  std::vector<std::optional<ResultIds>> found;
  for (const Prediction& one : predictions) found.push_back(ids.of(one));
  const bool none_listed = std::ranges::none_of(found, [](const auto& one) { return one.has_value(); });
  const bool by_name = !ids.has_files() || (annotations.empty() && none_listed);

  std::vector<std::string> notes, unlisted;
  if (info.fields.target().ids.empty() &&
      std::ranges::any_of(found, [&](const auto& one) { return !one || one->categories == &ids.own(); })) {
    notes.emplace_back(
        "the model has no category ids, since its data had none or an earlier version trained it: category_id is the "
        "number of the class, from 1. Name the data's annotations to take theirs (--annotations FILE.json)");
  }
  json results = json::array();
  bool is_named = false;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& one = predictions[i];
    if (!found[i] && !by_name) {
      unlisted.push_back(one.source);
      continue;
    }
    is_named = is_named || !found[i];
    const ResultIds of_image = found[i].value_or(ResultIds{id_by_name(one), &ids.own()});
    for (const DetectedBox& box : one.boxes) {
      results.push_back({{"image_id", json::parse(of_image.image)},
                         {"category_id", of_image.categories->at(static_cast<std::size_t>(box.index))},
                         {"bbox", {box.left, box.top, box.right - box.left, box.bottom - box.top}},
                         {"score", box.score}});
    }
    add_masks(results, one, of_image);
  }
  if (is_named) {
    notes.emplace_back(
        "no annotations list these images: image_id is the number that a file is called by, else its name. "
        "--annotations FILE.json takes the ids of a file");
  }
  if (!unlisted.empty()) {
    notes.push_back(named_count(unlisted, "image is not in " + ids.file_names() + " and left out",
                                "images are not in " + ids.file_names() + " and left out"));
  }
  require_writable(file);
  write_atomically(file, results.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  return notes;
}

}  // namespace gpunn
