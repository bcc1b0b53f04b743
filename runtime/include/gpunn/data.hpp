#pragma once

#include <gpunn/batch_source.hpp>
#include <gpunn/data_config.hpp>
#include <gpunn/evaluation_part.hpp>
#include <gpunn/export.h>
#include <gpunn/sample_source.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gpunn {

// A part of each sample beside its input, under a name.
struct Field {
  TensorType type;                // [rows, ...]; of a ragged field [items, ...]
  std::vector<std::byte> values;  // type.bytes()
  // Of a ragged field, as the boxes of images: row i has the items offsets[i] to offsets[i + 1]; else empty.
  std::vector<int64_t> offsets = {};
};

// The kind of target that the samples of a data set have.
enum class TargetKind {
  one_class,  // Split::labels
  numbers,    // field kTargetField, a number a column
  labels,     // field kTargetField, a column a label: 1 where the sample has it, else 0
  image,      // field kTargetField, an image [rows, C, H, W]
  boxes,      // field kTargetField, the boxes of an image [rows, boxes, kBoxNumbers]
};

// The field that tasks without classes learn: f32[rows, outputs], or images.
inline constexpr const char* kTargetField = "target";

// A box of TargetKind::boxes: left, top, right and bottom in pixels of the sample, its class, 1 where finding it counts
// for nothing (difficult, or a crowd), and how many of the sample's pixels a pixel of the image is. Rows with fewer
// boxes than there is room for have the class -1 behind them.
inline constexpr int64_t kBoxNumbers = 7;

// One part of a data set, in host memory.
struct Split {
  TensorType samples;                   // u8 or f32 [rows, C, H, W] or [rows, features]
  std::vector<std::byte> values;        // samples.bytes()
  std::vector<int32_t> labels;          // a class a row, of a classification; else empty
  std::map<std::string, Field> fields;  // what other tasks need of a sample, by name
  // In place of `values`: the samples in memory of the calling program, packed, which stays as it is. They are copied
  // once, to the device; where they are streamed, only batch by batch.
  std::shared_ptr<const std::byte> lent = {};
  // Also in place of `values`: what makes the samples when they are wanted; row i is its row source_rows[i].
  std::shared_ptr<const SampleSource> source = {};
  std::vector<int64_t> source_rows = {};
  // Also in place of `values`: samples of sizes of their own, each in a split of one row. Then `samples` and the types
  // of the fields have the number of rows and the largest size.
  std::vector<Split> singles = {};
  std::string name = {};  // of a single: what its image is called
  int64_t rows() const { return samples.shape.empty() ? 0 : samples.shape[0]; }
  std::span<const std::byte> sample_bytes() const {
    return lent == nullptr ? std::span<const std::byte>(values) : std::span(lent.get(), samples.bytes());
  }
};

// The sample of a row, packed, wherever the split has it.
GPUNN_API std::vector<std::byte> sample_of(const Split& split, int64_t row);

// How an image of another size becomes a sample.
struct ImageFit {
  bool crop = false;         // scaled, its proportions kept, and cut around the middle; else stretched
  bool inside = false;       // scaled to fit into the sample, its proportions kept, at its top left; the rest is grey
  int64_t shorter_side = 0;  // crop: its shorter side before the cut; 0: the least size that covers the sample
};

// Identifies the rows of a part: equal parts have equal digests, and parts that differ almost never do.
struct PartDigest {
  int64_t rows = 0;
  uint32_t samples = 0, targets = 0;  // CRC-32 of the bytes of Split::values, and of its labels and fields
  bool operator==(const PartDigest&) const = default;
};

// Identifies a data set: which rows it has, and which part has them.
struct DataDigest {
  std::string name, source;  // as Dataset has them
  PartDigest train, validation, test;
};

// A data set in memory: its samples and targets, and what they are.
struct Dataset {
  std::string name;
  std::string source;       // the files, or "synthetic, seed 1"
  std::string fallback_of;  // the set that was asked for and not found; empty: this is it
  Split train, test;
  // The rows that the training is watched by: rows that data.validation_fraction takes from the training samples, or a
  // validation part of the user's own. No rows without either.
  Split validation;
  EvaluationPart evaluated = EvaluationPart::test;  // what `test` holds; of a session's data set it may be the other
  TargetKind targets = TargetKind::one_class;
  int64_t target_size = 0;               // numbers in a row's target, where that is not `classes`
  int64_t classes = 0;                   // that samples are told apart into; of other tasks, the numbers in a target
  std::vector<std::string> class_names;  // of other tasks, what those numbers are
  // Of a regression, by number of a target: models learn (target - mean) / stddev.
  std::vector<double> target_mean = {}, target_stddev = {};
  std::vector<double> mean, stddev;  // by channel, of values scaled by 1/255 where u8
  std::vector<std::string> notes;    // what was done to the files that their owner may want to know
  bool light_on_dark = false;        // as MNIST's digits: a picture of dark on light is its negative
  ImageFit fit;                      // how images became samples
  std::vector<std::string> columns;  // of a table: the names of its features, in their order; empty: it has no names
  bool from_registry = false;        // a published set without files here: load_sizes() has the registry's sizes
  DataDigest digest;                 // of the parts as they were loaded; no rows where they were not looked at
  // In place of the values and targets of `train`: batches that the calling program brings while it trains. `train` has
  // the type of the samples, for as many rows as an epoch's steps have at most.
  std::shared_ptr<BatchSource> batches = {};
  bool unwatched = false;  // a training without rows to evaluate is meant
  int64_t scale = 1;       // of TargetKind::image: how many times larger targets are than what was made of them
};

// The name of a data set that a program has in memory, as DataConfig::dataset and Dataset::name have it.
inline constexpr const char* kArrays = "arrays";

// A data set of kArrays as load_dataset() would have it: some of its training rows put aside, cut to the limits, its
// statistics measured, all as config says. Throws Error(usage) where parts, types, labels or sizes don't go together.
GPUNN_API Dataset prepare_arrays(Dataset dataset, const DataConfig& config);

// Reads or makes the data set. One in files is looked for in config.path, $GPUNN_DATA_DIR, where the distribution's
// package installs it and the user's cache folder, then downloaded into the latter unless GPUNN_OFFLINE=1 is set.
// Throws Error with ExitCode::missing, and every place looked in, where it is nowhere and config names no fallback.
GPUNN_API Dataset load_dataset(const DataConfig& config);

// The data set as load_dataset() gives it, for callers that only need its sizes. Nothing is downloaded: a set that
// gpunn draws itself, or a published set that is not on this machine, has the registry's sizes and samples that are all
// 0. Published sets on this machine and the user's own sets are read.
GPUNN_API Dataset load_sizes(const DataConfig& config);

// Statistics of a channel of images, or a feature, in the units of the samples: 0 to 255 where they are u8.
struct ChannelSummary {
  double min = 0, max = 0, mean = 0, stddev = 0;
};

// The contents of a split in figures: rows of each class, statistics of each channel and target.
struct SplitSummary {
  int64_t rows = 0;
  std::vector<int64_t> labels;           // rows of each class, or that have each label
  std::vector<ChannelSummary> channels;  // of a split with a source, of 2048 rows at equal distances
  std::vector<ChannelSummary> targets;   // of TargetKind::numbers, by column
};
// Reads all samples of the split once. `classes` is the number of classes, or of labels.
GPUNN_API SplitSummary summarize(const Split& split, int64_t classes, TargetKind targets = TargetKind::one_class);

// Writes a PNG with the first training images of each class side by side, at most `columns` of them, a row a class from
// the top behind the class's name. A row is a label where samples have several, and a range of the first target column
// where they have numbers. Throws Error(usage) where the samples are no images.
GPUNN_API void write_contact_sheet(const Dataset& set, const std::filesystem::path& file, int64_t columns = 12);

// How a folder is packed.
struct PackOptions {
  bool decoded = false;            // images as pixels, not as they are in their files
  int64_t shorter_side = 0;        // of decoded images, in pixels, where theirs is longer; 0: as they are
  bool leave_out_damaged = false;  // images that can't be read; else they are an error
};
// What a packed folder has.
struct PackReport {
  int64_t files = 0, images = 0;
  uint64_t bytes = 0;                 // of the packed file
  std::vector<std::string> left_out;  // what is wrong with each image that can't be read
};
// Writes all files beneath a folder into one, which stands for the folder wherever data.path or another key names one.
// Every image is decoded once, to know that it can be. Throws Error with the images that can't be read, all of them.
GPUNN_API PackReport pack_folder(const std::filesystem::path& folder, const std::filesystem::path& file,
                                 const PackOptions& options = {});

// A data set that the program knows by name.
struct DatasetInfo {
  std::string name;
  std::string description;
  bool synthetic = false;
  bool users_own = false;       // read from data.path
  std::filesystem::path found;  // empty: not on this machine
  std::vector<std::filesystem::path> searched;
};
// All data sets that `data.dataset` may name, found on this machine or not.
GPUNN_API std::vector<DatasetInfo> list_datasets();

// Fetches a set into the user's cache folder, checks its digests, and returns the folder.
GPUNN_API std::filesystem::path download_dataset(const std::string& name);

// Reads a PNG, JPEG or binary PGM/PPM image as u8 [C, H, W], converted to `channels` and fitted to `height` by `width`
// with the values that Pillow's and torchvision's bilinear Resize give. For one channel a dark-on-light image is
// inverted where `invert_light_background` is set, as MNIST's digits are light on dark.
GPUNN_API std::vector<uint8_t> read_image(const std::filesystem::path& file, int64_t channels, int64_t height,
                                          int64_t width, bool invert_light_background, const ImageFit& fit = {});
// The same of the bytes of such a file; errors call it `name`. An image of more than `most_pixels` is refused before
// memory for it is taken.
GPUNN_API std::vector<uint8_t> read_image(std::span<const uint8_t> bytes, const std::string& name, int64_t channels,
                                          int64_t height, int64_t width, bool invert_light_background,
                                          const ImageFit& fit, int64_t most_pixels);

}  // namespace gpunn
