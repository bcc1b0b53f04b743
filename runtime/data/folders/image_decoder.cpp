#include "data/folders/image_decoder.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "common/host_memory.hpp"
#include "common/parallel.hpp"
#include "common/text.hpp"
#include "data/images/image.hpp"
#include "data/rows/own_data.hpp"
#include "data/rows/room.hpp"
#include "data/rows/rows.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kColours = 3;
constexpr int64_t kFilesAtATime = 32;   // few enough for an even share of large images
constexpr uint64_t kShareOfMemory = 2;  // the other half is for what else this machine does

// How many of the images are something that their owner may not expect, and the first of them.
class Oddity {
 public:
  void count(std::size_t row) {
    const std::lock_guard lock(mutex_);
    ++count_;
    first_ = std::min(first_, row);
  }
  // "12 of 300 images: <what>; the first is FILE". Nothing where there is none.
  void tell(const std::string& what, const std::vector<fs::path>& files, std::vector<std::string>& notes) const {
    if (count_ == 0) return;
    notes.push_back(std::to_string(count_) + " of " + std::to_string(files.size()) + " images: " + what +
                    "; the first is " + files[first_].string());
  }

 private:
  std::mutex mutex_;
  std::size_t count_ = 0;
  std::size_t first_ = SIZE_MAX;
};

std::size_t row_bytes(const Split& split) {
  const Shape& shape = split.samples.shape;
  return static_cast<std::size_t>(shape[1] * shape[2] * shape[3]);
}

void drop_colours(Split& split) {
  if (split.rows() == 0) return;
  const std::size_t from = row_bytes(split);
  split.samples.shape[1] = 1;
  const std::size_t plane = row_bytes(split), rows = static_cast<std::size_t>(split.rows());
  for (std::size_t row = 1; row < rows; ++row) {
    std::memmove(split.values.data() + row * plane, split.values.data() + row * from, plane);
  }
  split.values.resize(rows * plane);
  split.values.shrink_to_fit();
}

}  // namespace

ImageDecoder::ImageDecoder(const SizedImages& settings, fs::path root, Damaged damaged)
    : settings_(settings), root_(std::move(root)), damaged_(damaged), damaged_files_(damaged) {
  form_ = {.channels = settings.channels, .shorter_side = settings.shorter_side};
  if (settings.image_size.empty()) return;
  form_.height = settings.image_size[0];
  form_.width = settings.image_size[1];
}

void ImageDecoder::choose(std::size_t files, const std::vector<fs::path>& train, const DataConfig& config,
                          std::vector<std::string>& notes) {
  if (form_.height == 0) take_size_of_first(train);
  const Shape sample{kColours, form_.height, form_.width};
  const uint64_t bytes = TensorType{DType::u8, sample}.bytes() * files;
  const uint64_t free = free_host_memory();
  each_epoch_ = settings_.decode == Decoding::each_epoch;
  if (settings_.decode == Decoding::automatic) {
    each_epoch_ = config.whole_images || (free > 0 && bytes > free / kShareOfMemory);
    if (each_epoch_ && !config.whole_images) {
      notes.push_back("decoded, the images would take " + human_bytes(bytes) + " of " + human_bytes(free) +
                      " of free memory: they are decoded anew each time they are wanted (data.decode)");
    }
  }
  if (each_epoch_ && form_.channels == 0) form_.channels = kColours;
}

void ImageDecoder::decode(const std::vector<fs::path>& files, Split& split, std::vector<std::string>& notes) {
  const int64_t rows = std::ssize(files);
  const int64_t channels = form_.channels == 0 ? kColours : form_.channels;
  split.samples = {DType::u8, {rows, channels, form_.height, form_.width}};
  if (each_epoch_) {
    split.source = std::make_shared<ImageRows>(files, form_, damaged_);
    split.source_rows.resize(files.size());
    std::iota(split.source_rows.begin(), split.source_rows.end(), int64_t{0});
    if (damaged_ == Damaged::error) return;  // which is found when an image is read
    damaged_files_.search(files);
    leave_out_damaged(files, split);
    return;
  }
  require_memory(split.samples.bytes(), "the images of " + root_.string(),
                 "set data.decode: each_epoch, or data.image_size to a smaller size");
  make_room(split);
  std::vector<uint8_t> grey(files.size());  // not bits, which threads would share
  Oddity deep, animated, turned;
  LongWork work("decoding the images of " + root_.filename().string(), files.size());
  for_row_stretches(rows, kFilesAtATime, [&](int64_t first, int64_t last) {
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row) {
      Image image;
      const auto read = [&](std::string* damage) { image = read_image_file(files[row], damage); };
      work.advance();
      if (!damaged_files_.sound(files[row], read)) continue;
      if (image.from_16_bits) deep.count(row);
      if (image.first_frame) animated.count(row);
      if (image.turned) turned.count(row);
      image = sample_image(std::move(image), files[row], form_);
      grey[row] = image.channels == 1 ? 1 : 0;
      write_planes(image, split.values.data() + row * row_bytes(split));
    }
  });
  deep.tell("16 bits a channel, scaled down to 8", files, notes);
  animated.tell("animated, of which the first picture is taken", files, notes);
  turned.tell("turned as the camera noted (EXIF)", files, notes);
  const std::vector<int64_t> kept = leave_out_damaged(files, split);
  for (const int64_t row : kept) grey_.push_back(grey[static_cast<std::size_t>(row)]);
}

void ImageDecoder::settle_damaged(const Dataset& set, std::vector<std::string>& notes) const {
  damaged_files_.settle(root_.string(), notes);
  if (damaged_files_.found().empty()) return;
  std::vector<bool> there(static_cast<std::size_t>(set.fields.target().count()));
  const std::vector<int32_t> classes = labels_of(set.train);
  for (const int32_t label : classes) there[static_cast<std::size_t>(label)] = true;
  const auto lost = std::find(there.begin(), there.end(), false);
  if (set.train.rows() > 0 && (classes.empty() || lost == there.end())) return;
  throw Error(
      root_.string() + ": all training images" +
      (set.train.rows() == 0
           ? ""
           : " of the class " + in_quotes(set.fields.target().names[static_cast<std::size_t>(lost - there.begin())])) +
      " are damaged and left out (data.damaged)\n  " + join(notes, "\n  "));
}

void ImageDecoder::settle_channels(std::initializer_list<Split*> splits, std::vector<std::string>& notes) const {
  if (form_.channels != 0) return;
  const auto count = std::count(grey_.begin(), grey_.end(), uint8_t{1});
  const bool all_grey = count == static_cast<std::ptrdiff_t>(grey_.size());
  std::size_t before = 0;
  for (Split* split : splits) {
    if (all_grey) {
      drop_colours(*split);
    } else {
      repeat_grey(*split, before);
    }
    before += static_cast<std::size_t>(split->rows());
  }
  if (count > 0 && !all_grey) {
    notes.push_back(
        std::to_string(count) + " of " + std::to_string(grey_.size()) +
        " images are grey among colour ones; all are read with 3 channels (data.channels: 1 makes all grey)");
  }
}

// Of the first image that is not damaged.
void ImageDecoder::take_size_of_first(const std::vector<fs::path>& files) {
  DamagedFiles damaged(damaged_);
  for (const fs::path& file : files) {
    Image image;
    if (!damaged.sound(file, [&](std::string* damage) { image = read_image_file(file, damage); })) continue;
    form_.height = image.height;
    form_.width = image.width;
    form_.scaled = false;
    form_.like = file;
    return;
  }
  std::vector<std::string> notes;
  damaged.settle(root_.string(), notes);
  throw Error(root_.string() + ": all training images are damaged and left out (data.damaged)\n  " +
              join(notes, "\n  "));
}

// The rows that stay.
std::vector<int64_t> ImageDecoder::leave_out_damaged(const std::vector<fs::path>& files, Split& split) const {
  std::set<fs::path> lost;
  for (const DamagedImage& image : damaged_files_.found()) {
    if (!image.repaired) lost.insert(image.file);
  }
  std::vector<int64_t> kept;
  for (std::size_t row = 0; row < files.size(); ++row) {
    if (!lost.contains(files[row])) kept.push_back(static_cast<int64_t>(row));
  }
  if (kept.size() < files.size()) keep_rows(split, kept);
  return kept;
}

void ImageDecoder::repeat_grey(Split& split, std::size_t before) const {
  for (std::size_t row = 0; row < static_cast<std::size_t>(split.rows()); ++row) {
    if (grey_[before + row] == 0) continue;
    const std::size_t plane = row_bytes(split) / kColours;
    std::byte* at = split.values.data() + row * row_bytes(split);
    for (std::size_t c = 1; c < kColours; ++c) std::memcpy(at + c * plane, at, plane);
  }
}

}  // namespace gpunn::data
