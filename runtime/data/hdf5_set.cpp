// The user's own arrays in an HDF5 file: images [rows, H, W], [rows, C, H, W] or [rows, H, W, C], or [rows, features],
// and the class of each row. Unsigned bytes stay what they are, other numbers become f32 or, where that would round
// them, f64.
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "common/text.hpp"
#include "common/trial.hpp"
#include "data/hdf5_array.hpp"
#include "data/own_data.hpp"
#include "data/registry.hpp"
#include "data/room.hpp"
#include "data/standardise.hpp"
#include "data/target_columns.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kMostHdf5Classes = 10000;
constexpr int64_t kBytesAtATime = int64_t{16} << 20;

bool is_channels(int64_t dim) { return dim == 1 || dim == 3; }

// Where the channels of rank-4 images are.
bool channels_last(const Hdf5Array& array, ImageLayout layout) {
  if (layout != ImageLayout::automatic) return layout == ImageLayout::channels_last;
  const Shape& shape = array.shape();
  if (is_channels(shape[1]) == is_channels(shape[3])) {
    throw Error(array.name() + ": images of " + to_string(shape) +
                    " may be [rows, C, H, W] or [rows, H, W, C]; say which with data.layout: channels_first or "
                    "channels_last",
                ExitCode::usage);
  }
  return is_channels(shape[3]);
}

// An array of samples on its way to a split.
class Samples {
 public:
  Samples(const Hdf5Array& array, ImageLayout layout) : array_(array) {
    const Shape& shape = array.shape();
    switch (shape.size()) {
      case 2:
        shape_ = shape;
        break;
      case 3:
        shape_ = {shape[0], 1, shape[1], shape[2]};
        break;
      case 4:
        last_ = channels_last(array, layout);
        shape_ = last_ ? Shape{shape[0], shape[3], shape[1], shape[2]} : shape;
        break;
      default:
        throw Error(array.name() +
                    ": expected samples of [rows, features], [rows, H, W], [rows, C, H, W] or [rows, H, "
                    "W, C], found " +
                    to_string(shape));
    }
  }

  void read(Split& split) const {
    split.samples = {array_.dtype(), shape_};
    if (array_.halves()) split.rounded_to = DType::f16;
    require_memory(split.samples.bytes(), array_.name() + ": the samples", "write fewer of them, or as unsigned bytes");
    make_room(split);
    switch (array_.dtype()) {
      case DType::u8:
        return read_as<uint8_t>(split, H5T_NATIVE_UINT8);
      case DType::f64:
        return read_as<double>(split, H5T_NATIVE_DOUBLE);
      default:
        return read_as<float>(split, H5T_NATIVE_FLOAT);
    }
  }

 private:
  template <class T>
  void read_as(Split& split, hid_t type) const {
    const int64_t row_elements = element_count({shape_.begin() + 1, shape_.end()});
    const int64_t row_bytes = row_elements * static_cast<int64_t>(sizeof(T));
    const int64_t at_a_time = std::clamp<int64_t>(kBytesAtATime / row_bytes, 1, shape_[0]);
    std::vector<T> block(static_cast<std::size_t>(at_a_time * row_elements));
    LongWork work("reading " + array_.name(), split.samples.bytes(), WorkUnit::bytes);
    for (int64_t first = 0; first < shape_[0]; first += at_a_time) {
      const int64_t count = std::min(at_a_time, shape_[0] - first);
      array_.read_rows(first, count, type, block.data());
      const auto rows = std::span(block).first(static_cast<std::size_t>(count * row_elements));
      if constexpr (std::is_floating_point_v<T>) require_finite<T>(rows, first, row_elements);
      std::byte* target = split.values.data() + first * row_bytes;
      if (last_) {
        std::vector<T> planes(rows.size());
        for (int64_t i = 0; i < count; ++i)
          to_planes(block.data() + i * row_elements, planes.data() + i * row_elements);
        std::memcpy(target, planes.data(), rows.size() * sizeof(T));
      } else {
        std::memcpy(target, rows.data(), rows.size() * sizeof(T));
      }
      work.advance(rows.size() * sizeof(T));
    }
  }

  template <class T>
  void to_planes(const T* pixels, T* planes) const {
    const int64_t channels = shape_[1], count = shape_[2] * shape_[3];
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < count; ++i) planes[c * count + i] = pixels[i * channels + c];
    }
  }

  template <class T>
  void require_finite(std::span<const T> values, int64_t first_row, int64_t row_elements) const {
    const auto bad = std::find_if_not(values.begin(), values.end(),
                                      [](T value) { return std::isfinite(static_cast<float>(value)); });
    if (bad == values.end()) return;
    const int64_t row = first_row + (bad - values.begin()) / row_elements;
    throw Error(array_.name() + ": row " + std::to_string(row) + " has " + non_finite_text(static_cast<double>(*bad)) +
                "; samples must be finite. Replace or leave out what is not");
  }

  const Hdf5Array& array_;
  Shape shape_;
  bool last_ = false;
};

std::vector<int32_t> read_labels(const Hdf5Array& array) {
  const Shape& shape = array.shape();
  if (shape.size() > 2 || (shape.size() == 2 && shape[1] != 1)) {
    throw Error(array.name() + ": expected a class a row, [rows], found " + to_string(shape) +
                (shape.size() == 2 ? "; of one-hot rows write the number of the 1" : ""));
  }
  if (!array.integers()) throw Error(array.name() + ": expected classes as integers, found floating-point numbers");
  require_memory(static_cast<uint64_t>(shape[0]) * sizeof(int64_t), array.name() + ": the classes", "write fewer");
  // Classes are few; what does not fit 64 bits is no class.
  std::vector<int64_t> wide(static_cast<std::size_t>(shape[0]));
  array.read_rows(0, shape[0], H5T_NATIVE_INT64, wide.data());
  std::vector<int32_t> labels;
  labels.reserve(wide.size());
  for (std::size_t row = 0; row < wide.size(); ++row) {
    if (wide[row] < 0 || wide[row] >= kMostHdf5Classes) {
      throw Error(array.name() + ": the class of row " + std::to_string(row) + " is " + std::to_string(wide[row]) +
                  "; expected 0 to " + std::to_string(kMostHdf5Classes - 1));
    }
    labels.push_back(static_cast<int32_t>(wide[row]));
  }
  return labels;
}

// [rows] or [rows, outputs] of numbers, or of 0 and 1.
void read_targets(const Hdf5Array& array, TargetKind kind, Split& split) {
  const Shape& shape = array.shape();
  const bool labels = kind == TargetKind::labels;
  if (shape.size() != 2 && (labels || shape.size() != 1)) {
    throw Error(array.name() + ": expected " +
                (labels ? "a 0 or 1 for each label of a row, [rows, labels]" : "numbers, [rows] or [rows, columns]") +
                ", found " + to_string(shape));
  }
  const int64_t outputs = shape.size() == 2 ? shape[1] : 1;
  if (outputs > kMostHdf5Classes) {
    throw Error(array.name() + ": expected at most " + std::to_string(kMostHdf5Classes) + " targets a row, found " +
                std::to_string(outputs));
  }
  require_memory(static_cast<uint64_t>(shape[0] * outputs) * sizeof(double), array.name() + ": the targets",
                 "write fewer");
  std::vector<double> values(static_cast<std::size_t>(shape[0] * outputs));
  array.read_rows(0, shape[0], H5T_NATIVE_DOUBLE, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool sound = labels ? values[i] == 0 || values[i] == 1 : std::isfinite(static_cast<float>(values[i]));
    if (sound) continue;
    const auto columns = static_cast<std::size_t>(outputs);
    throw Error(
        array.name() + ": row " + std::to_string(i / columns) + ", column " + std::to_string(i % columns) +
        ": expected " + (labels ? "0 or 1" : "a finite number") + ", found " +
        (std::isfinite(static_cast<float>(values[i])) ? std::to_string(values[i]) : non_finite_text(values[i])) + "; " +
        (labels ? "the task multi_label has a column for each label, 1 where the row has it"
                : "the task regression learns numbers. Leave such rows out"));
  }
  if (labels) return set_label_targets(split, {values.begin(), values.end()}, outputs);
  set_number_targets(split, values, outputs);
}

struct ArrayNames {
  std::string samples, labels;
};

Split read_part(const Hdf5File& file, const ArrayNames& names, const DataConfig& config) {
  const auto& [samples_name, labels_name] = names;
  const Hdf5Array samples(file, samples_name), labels(file, labels_name);
  if (samples.shape()[0] != labels.shape()[0]) {
    throw Error(file.path().string() + ": " + in_quotes(samples_name) + " has " + std::to_string(samples.shape()[0]) +
                " rows and " + in_quotes(labels_name) + " " + std::to_string(labels.shape()[0]) + "; they must agree");
  }
  Split split;
  const TargetKind kind = target_kind(config);
  if (kind == TargetKind::one_class) {
    split.labels = read_labels(labels);
  } else {
    read_targets(labels, kind, split);
  }
  Samples(samples, settings_for<Hdf5Set>(config).layout).read(split);
  return split;
}

void require_names(const Hdf5File& file, const Hdf5Set& settings) {
  if (settings.train_samples.empty() || settings.train_labels.empty()) {
    throw Error("data.train_samples and data.train_labels have to name arrays of " + file.path().string() +
                    "; it has " + file.contents(),
                ExitCode::usage);
  }
  if (settings.test_samples.empty() != settings.test_labels.empty()) {
    throw Error("data.test_samples and data.test_labels go together; found only one of them", ExitCode::usage);
  }
}

// Arrays have no names for classes, labels or columns.
void name_outputs(Dataset& set, const Hdf5Set& settings) {
  for (const Split* split : {&set.train, &set.test}) {
    for (const int32_t label : split->labels) set.classes = std::max<int64_t>(set.classes, label + 1);
    const auto field = split->fields.find(kTargetField);
    if (field == split->fields.end()) continue;
    const int64_t outputs = field->second.type.shape[1];
    if (set.classes > 0 && outputs != set.classes) {
      throw Error(set.source + ": the training rows have " + std::to_string(set.classes) +
                  " targets each and the test rows " + std::to_string(outputs) + "; they must agree");
    }
    set.classes = outputs;
  }
  const bool one_number = set.targets == TargetKind::numbers && set.classes == 1;
  for (int64_t i = 0; i < set.classes; ++i) {
    set.class_names.push_back(one_number ? settings.train_labels : std::to_string(i));
  }
}

Dataset read_arrays(const DataConfig& config) {
  const Hdf5Set settings = settings_for<Hdf5Set>(config);
  Dataset set;
  set.name = "hdf5";
  set.source = config.path.string();
  set.targets = target_kind(config);
  const ArrayNames train_names{settings.train_samples, settings.train_labels};
  const ArrayNames test_names{settings.test_samples, settings.test_labels};
  {
    const Hdf5File file(config.path);
    require_names(file, settings);
    set.train = read_part(file, train_names, config);
    if (config.test_path.empty() && !settings.test_samples.empty()) {
      set.test = read_part(file, test_names, config);
    }
  }
  if (!config.test_path.empty()) {
    const Hdf5File file(config.test_path);
    set.test = read_part(file, settings.test_samples.empty() ? train_names : test_names, config);
  }
  const Shape& train = set.train.samples.shape;
  const Shape& test = set.test.samples.shape;
  if (set.test.rows() > 0 && (device_type(set.train.samples).dtype != device_type(set.test.samples).dtype ||
                              !std::equal(train.begin() + 1, train.end(), test.begin() + 1, test.end()))) {
    throw Error(set.source + ": training samples are " + to_string(set.train.samples) + " and test samples " +
                to_string(set.test.samples) + "; they may differ in the number of rows alone");
  }
  name_outputs(set, settings);
  take_test_share(set, config);
  return set;
}

// libhdf5 trusts what it reads: in files of the older format, which have no checksums, a changed byte can crash it.
Dataset read_hdf5(const DataConfig& config) {
  const std::string crash = crash_of([&] { read_arrays(config); });
  if (!crash.empty()) {
    throw Error(config.path.string() + (config.test_path.empty() ? "" : " or " + config.test_path.string()) +
                ": reading it crashes the HDF5 library (" + crash + "); the file is damaged, fetch or write it again");
  }
  return read_arrays(config);
}

config::KindOf<DataConfig> hdf5_keys() {
  using namespace config;
  using H = Hdf5Set;
  return keys_of_set<H>(
      optional(text("train_samples", &H::train_samples,
                    "The array of the training samples: images or [rows, features]. Has to be given.")),
      optional(text("train_labels", &H::train_labels,
                    "The array of what is learnt: classes as numbers from 0; numbers, [rows] or [rows, columns]; or a "
                    "0 or 1 for each label, [rows, labels]. Has to be given.")),
      optional(text("test_samples", &H::test_samples,
                    "The array of the test samples. In `test_path`, default: `train_samples`.")),
      optional(text("test_labels", &H::test_labels,
                    "The same of the test samples. In `test_path`, default: `train_labels`.")),
      choice("layout", &H::layout, {"auto", "channels_first", "channels_last"},
             "Order of images: [rows, C, H, W] or [rows, H, W, C]; `auto`: the one with 1 or 3 channels."));
}

}  // namespace

DatasetRow hdf5_row() {
  DatasetRow row;
  row.name = "hdf5";
  row.description = "your own arrays (data.path, an HDF5 file): data.train_samples and data.train_labels name them";
  row.origin = Origin::user;
  row.make = read_hdf5;
  row.keys = hdf5_keys;
  return row;
}

}  // namespace gpunn::data
