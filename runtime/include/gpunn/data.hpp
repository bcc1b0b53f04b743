#pragma once

#include <gpunn/batch_source.hpp>
#include <gpunn/data_config.hpp>
#include <gpunn/evaluation_part.hpp>
#include <gpunn/export.h>
#include <gpunn/field.hpp>
#include <gpunn/sample_source.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpunn {

// A box of the kind "boxes" has these numbers: left, top, right and bottom in pixels of the sample; its class. The rows
// of an image with fewer boxes are filled up with boxes of class -1.
inline constexpr int64_t kBoxNumbers = 5;

// Values of evaluated rows with boxes, which are not in the schema: the boxes and images as the files have them, for
// figures that COCO and VOC define by the files. They stay in host memory.
// f64, ragged: left, top, right and bottom in pixels of the file; the class; the area that the annotation gives, else
// NaN; 1 if it is difficult; 1 if it is a crowd; 1 if the annotation's id is 0.
inline constexpr const char* kObjectsField = "objects";
inline constexpr int64_t kObjectNumbers = 9;
// i64 [rows, 3]: rows and columns of the image's file, and its place when COCO's image ids are sorted.
inline constexpr const char* kImagesField = "images";
inline constexpr int64_t kImageNumbers = 3;
// u8, ragged: COCO's image id as JSON. Only if the annotations have ids.
inline constexpr const char* kImageIdsField = "image_ids";
// i64 [rows], of pictures with label maps in files: the number of a row's file in the data source's own list, by which
// the source finds the file again. It is not in the schema either.
inline constexpr const char* kFileNumbersField = "file_numbers";

// One part of a data set, in host memory.
struct Split {
  TensorType samples;                         // u8, f32 or f64 [rows, C, H, W] or [rows, features]
  std::vector<std::byte> values;              // samples.bytes()
  std::map<std::string, FieldValues> fields;  // by name: all but the first input
  // Replaces `values`: packed samples in the caller's memory, which must not change. They are copied to the device
  // once, or batch by batch if the data is streamed.
  std::shared_ptr<const std::byte> lent = {};
  // Replaces `values`: makes a sample when it is needed. Row i is row source_rows[i] of the source.
  std::shared_ptr<const SampleSource> source = {};
  std::vector<int64_t> source_rows = {};
  // Replaces `values`: samples of different sizes, each in a split of one row. `samples` and the types of the fields
  // then have the number of rows and the largest size.
  std::vector<Split> singles = {};
  std::string name = {};  // of a split of one row: its image's name
  // The type that the samples were rounded to before they came here, if `samples` has a wider one.
  std::optional<DType> rounded_to = {};
  int64_t rows() const { return samples.shape.empty() ? 0 : samples.shape[0]; }
  std::span<const std::byte> sample_bytes() const {
    return lent == nullptr ? std::span<const std::byte>(values) : std::span(lent.get(), samples.bytes());
  }
};

// The classes of a split's rows, of the field kLabelField. Empty: it has none.
GPUNN_API std::vector<int32_t> labels_of(const Split& split);

// The packed sample of a row, wherever the split stores it.
GPUNN_API std::vector<std::byte> sample_of(const Split& split, int64_t row);

// Identifies the rows of a part: equal parts have equal digests, and different parts almost never do.
struct PartDigest {
  int64_t rows = 0;
  uint32_t samples = 0, targets = 0;  // CRC-32 of the bytes of Split::values, and of its fields
  bool operator==(const PartDigest&) const = default;
};

// Identifies a data set: its rows, and the part that each row belongs to.
struct DataDigest {
  std::string name, source;  // those of Dataset
  PartDigest train, validation, test;
};

// A data set in memory: its samples and targets, and what they are.
struct Dataset {
  std::string name;
  std::string source;       // the files, or "synthetic, seed 1"
  std::string fallback_of;  // the missing set that this one replaces; empty: none
  Split train, test;
  // Rows that are evaluated while training: those that data.validation_fraction takes from the training samples, or the
  // user's own validation part. No rows without either.
  Split validation;
  EvaluationPart evaluated = EvaluationPart::test;  // what `test` holds; a session's data set may hold the other part
  Schema fields;                                    // what the samples are
  std::vector<std::string> notes;                   // for the user: what was changed while reading the files
  bool from_registry = false;  // a published set without files here: load_sizes() takes the registry's sizes
  DataDigest digest;           // of the parts as they were loaded; no rows: not computed
  // Replaces the values and targets of `train`: the calling program supplies batches while it trains. `train` has the
  // type of the samples and the largest number of rows in an epoch.
  std::shared_ptr<BatchSource> batches = {};
  bool unwatched = false;  // the caller wants to train without evaluation
};

// The name of a data set in the program's memory, in DataConfig::dataset and Dataset::name.
inline constexpr const char* kArrays = "arrays";

// Prepares a data set of kArrays as load_dataset() would, by the settings of `config`: it puts training rows aside,
// cuts to the limits, and measures statistics. Throws Error(usage) if parts, types, labels or sizes do not fit
// together.
GPUNN_API Dataset prepare_arrays(Dataset dataset, const DataConfig& config);

// Reads or makes the data set. Its files are searched in config.path, $GPUNN_DATA_DIR, the folder of the distribution's
// package and the user's cache folder, in this order. A set that is missing is downloaded into the cache folder, unless
// GPUNN_OFFLINE=1 is set. Throws Error with ExitCode::missing and the folders searched, if the set is nowhere and
// config names no fallback.
GPUNN_API Dataset load_dataset(const DataConfig& config);

// Returns the data set for callers that need only its sizes, without downloads. A set that gpunn draws itself, or a
// published set that is missing here, has the registry's sizes and samples of zeros. Published sets on this machine and
// the user's own sets are read.
GPUNN_API Dataset load_sizes(const DataConfig& config);

// Statistics of a split.
struct SplitSummary {
  int64_t rows = 0;
  std::vector<ChannelSummary> channels;        // of the first input; with a source, over 2048 rows at equal distances
  std::map<std::string, FieldSummary> fields;  // of the others, by name
};
// Reads all samples of the split once.
GPUNN_API SplitSummary summarize(const Split& split, const Schema& fields);

// Writes a PNG with the first training images of each class side by side: a row for each class, its name on the left,
// at most `columns` images. If samples have several labels, a row is a label; if they have numbers, it is a range of
// the first target column. Throws Error(usage) if the samples are not images, or their targets can't be grouped.
GPUNN_API void write_contact_sheet(const Dataset& set, const std::filesystem::path& file, int64_t columns = 12);

// How a folder is packed into one file.
struct PackOptions {
  bool decoded = false;            // store pixels; else store the image files as they are
  int64_t shorter_side = 0;        // of decoded images: larger ones are scaled to this, in pixels; 0: no scaling
  bool leave_out_damaged = false;  // skip images that cannot be read; else they are an error
};
// The result of packing a folder.
struct PackReport {
  int64_t files = 0, images = 0;
  uint64_t bytes = 0;                 // of the packed file
  std::vector<std::string> left_out;  // the error of each image that cannot be read
};
// Writes all files of a folder, and of its subfolders, into one file. data.path and other keys accept that file in
// place of the folder. Every image is decoded once as a test. Throws Error with all images that cannot be read.
GPUNN_API PackReport pack_folder(const std::filesystem::path& folder, const std::filesystem::path& file,
                                 const PackOptions& options = {});

// A data set that the program knows by name.
struct DatasetInfo {
  std::string name;
  std::string description;
  bool synthetic = false;
  bool users_own = false;       // read from data.path
  std::filesystem::path found;  // the folder; empty: not on this machine
  std::vector<std::filesystem::path> searched;
};
// All data sets that `data.dataset` accepts, whether or not this machine has them.
GPUNN_API std::vector<DatasetInfo> list_datasets();

// Downloads a set into the user's cache folder, checks its digests, and returns the folder.
GPUNN_API std::filesystem::path download_dataset(const std::string& name);

// Reads a PNG, JPEG or binary PGM/PPM image as u8 [C, H, W], converted to `channels` and fitted to `height` by `width`
// with the values that Pillow's and torchvision's bilinear Resize give. For one channel a dark-on-light image is
// inverted where `invert_light_background` is set, as MNIST's digits are light on dark.
GPUNN_API std::vector<uint8_t> read_image(const std::filesystem::path& file, int64_t channels, int64_t height,
                                          int64_t width, bool invert_light_background, const ImageFit& fit = {});
// The same for the bytes of such a file; errors call it `name`. Refuses an image of more than `most_pixels` before it
// allocates memory.
GPUNN_API std::vector<uint8_t> read_image(std::span<const uint8_t> bytes, const std::string& name, int64_t channels,
                                          int64_t height, int64_t width, bool invert_light_background,
                                          const ImageFit& fit, int64_t most_pixels);

}  // namespace gpunn
