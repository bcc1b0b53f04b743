#include "data/folders/damaged_files.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <iterator>

#include "common/parallel.hpp"
#include "data/images/image.hpp"

namespace gpunn {

namespace {

constexpr std::size_t kMostDamagedNamed = 100;

std::string counted_images(std::size_t count, std::size_t all) {
  return std::to_string(count) + " of " + std::to_string(all) + (all == 1 ? " image" : " images");
}

std::string named(const std::vector<DamagedImage>& images, const std::string& between) {
  std::string text;
  for (std::size_t i = 0; i < std::min(images.size(), kMostDamagedNamed); ++i) text += between + images[i].reason;
  if (images.size() > kMostDamagedNamed) {
    text += between + "and " + std::to_string(images.size() - kMostDamagedNamed) + " more";
  }
  return text.substr(std::min(text.size(), between.size()));
}

std::string in_place(const std::string& place) { return place.empty() ? "" : " in " + place; }

}  // namespace

Damaged damaged_named(const std::string& name) {
  if (name == "error") return Damaged::error;
  if (name == "skip") return Damaged::skip;
  if (name == "repair") return Damaged::repair;
  throw Error("damaged: expected error, skip or repair, found '" + name + "'", ExitCode::usage);
}

void refuse_damaged(const std::vector<DamagedImage>& images, std::size_t all, const std::string& place,
                    const std::string& advice) {
  if (images.empty()) return;
  const bool missing = std::ranges::all_of(images, &DamagedImage::missing);
  const ExitCode code = missing ? ExitCode::missing : ExitCode::failed;
  if (all == 1) throw Error(images.front().reason, code);
  throw Error(counted_images(images.size(), all) + in_place(place) +
                  (images.size() == 1 ? " is damaged:\n  " : " are damaged:\n  ") + named(images, "\n  ") + "\n" +
                  advice,
              code);
}

std::vector<std::string> damage_notes(const std::vector<DamagedImage>& images, std::size_t all,
                                      const std::string& place) {
  std::vector<std::string> notes;
  for (const bool repaired : {true, false}) {
    std::vector<DamagedImage> some;
    std::ranges::copy_if(images, std::back_inserter(some),
                         [&](const DamagedImage& image) { return image.repaired == repaired; });
    if (some.empty()) continue;
    notes.push_back(counted_images(some.size(), all) + in_place(place) +
                    (some.size() == 1 ? " is damaged and " : " are damaged and ") +
                    (repaired ? "used as far as the pixels can be read: " : "left out: ") + named(some, "; "));
  }
  return notes;
}

}  // namespace gpunn

namespace gpunn::data {

bool DamagedFiles::sound(const std::filesystem::path& file, const std::function<void(std::string* damage)>& decode) {
  ++all_;
  DamagedImage image{.file = file, .reason = {}};
  std::string damage;
  try {
    decode(policy_ == Damaged::repair ? &damage : nullptr);
    if (damage.empty()) return true;
    image.reason = damage;
    image.repaired = true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::failed && error.code() != ExitCode::missing) throw;
    image.reason = error.what();
    image.missing = error.code() == ExitCode::missing;
  }
  const std::lock_guard lock(mutex_);
  found_.push_back(image);
  return image.repaired;
}

void DamagedFiles::search(const std::vector<std::filesystem::path>& files) {
  LongWork work("checking the images", files.size());
  for_row_stretches(std::ssize(files), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i, work.advance()) {
      sound(files[i], [&](std::string* damage) { read_image_file(files[i], damage); });
    }
  });
}

std::vector<DamagedImage> DamagedFiles::found() const {
  const std::lock_guard lock(mutex_);
  std::vector<DamagedImage> images = found_;
  std::ranges::sort(images, {}, [](const DamagedImage& image) { return image.file.native(); });
  return images;
}

void DamagedFiles::settle(const std::string& place, std::vector<std::string>& notes) const {
  const std::size_t all = all_;
  const std::vector<DamagedImage> images = found();
  if (images.empty()) return;
  if (policy_ == Damaged::error) {
    gpunn::refuse_damaged(
        images, all, place,
        "Remove these files, or set data.damaged: skip to leave them out, or repair to use the pixels "
        "that can be read");
  }
  for (const std::string& note : damage_notes(images, all, place)) notes.push_back("data.damaged: " + note);
}

void DamagedFiles::report(const DamagedListener& listener) const {
  const std::vector<DamagedImage> images = found();
  if (listener) {
    for (const DamagedImage& image : images) listener(image);
  } else if (policy_ == Damaged::error) {
    gpunn::refuse_damaged(images, all_, "",
                          "The others are done. `damaged` says what becomes of such images: skip or repair");
  }
}

void refuse_damaged(const std::vector<std::filesystem::path>& files, const std::string& place) {
  DamagedFiles damaged(Damaged::error);
  damaged.search(files);
  std::vector<std::string> notes;
  damaged.settle(place, notes);
}

}  // namespace gpunn::data
