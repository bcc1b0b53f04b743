// The user's own arrays in an HDF5 file: images [rows, H, W], [rows, C, H, W] or [rows, H, W, C], or [rows, features],
// one array or several, and the class of each row. Unsigned bytes stay what they are, other numbers become f32 or,
// where that would round them, f64.
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "common/text.hpp"
#include "common/trial.hpp"
#include "data/hdf5/hdf5_array.hpp"
#include "data/registry.hpp"
#include "data/rows/own_data.hpp"
#include "data/rows/room.hpp"
#include "data/tables/target_columns.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "fields/values.hpp"

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
    throw Error(array_.name() + ": row " + std::to_string(row) + " has " +
                fields::non_finite_text(static_cast<double>(*bad)) +
                "; samples must be finite. Replace or leave out what is not");
  }

  const Hdf5Array& array_;
  Shape shape_;
  bool last_ = false;
};

// An array as the kinds of fields read it.
class Hdf5Source : public fields::ArraySource {
 public:
  explicit Hdf5Source(const Hdf5Array& array) : array_(array) {}
  std::string name() const override { return array_.name(); }
  const Shape& shape() const override { return array_.shape(); }
  bool integers() const override { return array_.integers(); }
  std::vector<int64_t> read_integers() const override { return read<int64_t>(H5T_NATIVE_INT64); }
  std::vector<double> read_numbers() const override { return read<double>(H5T_NATIVE_DOUBLE); }

 private:
  template <class T>
  std::vector<T> read(hid_t type) const {
    std::vector<T> numbers(static_cast<std::size_t>(element_count(array_.shape())));
    array_.read_rows(0, array_.shape()[0], type, numbers.data());
    return numbers;
  }

  const Hdf5Array& array_;
};

struct ArrayNames {
  std::string samples, labels;
  std::vector<std::string> inputs;  // as many as of the training part
  std::string weights;              // empty: there are none
};

// The last part of a path in a file: "row" of "train/row".
std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

TensorType row_type(const TensorType& rows) {
  return fields::device_type({rows.dtype, {rows.shape.begin() + 1, rows.shape.end()}});
}

void require_rows(const Hdf5File& file, const std::string& name, int64_t rows, const ArrayNames& names,
                  int64_t of_samples) {
  if (rows == of_samples) return;
  throw Error(file.path().string() + ": " + in_quotes(names.samples) + " has " + std::to_string(of_samples) +
              " rows and " + in_quotes(name) + " " + std::to_string(rows) + "; they must agree");
}

Split read_part(const Hdf5File& file, const ArrayNames& names, const DataConfig& config) {
  const Hdf5Array samples(file, names.samples), labels(file, names.labels);
  const ImageLayout layout = settings_for<Hdf5Set>(config).layout;
  require_rows(file, names.labels, labels.shape()[0], names, samples.shape()[0]);
  Split split;
  const std::string kind = config.learnt;
  split.fields[fields::target_field(kind, {}).name] = fields::find(kind).read(Hdf5Source(labels));
  Samples(samples, layout).read(split);
  const std::vector<std::string>& fields = settings_for<Hdf5Set>(config).train_inputs;
  for (std::size_t i = 0; i < names.inputs.size(); ++i) {
    const Hdf5Array array(file, names.inputs[i]);
    require_rows(file, names.inputs[i], array.shape()[0], names, split.rows());
    Split values;
    Samples(array, layout).read(values);
    split.fields[last_part(fields[i])] = {.type = values.samples, .values = std::move(values.values)};
  }
  if (!names.weights.empty()) {
    const Hdf5Array weights(file, names.weights);
    require_rows(file, names.weights, weights.shape()[0], names, split.rows());
    FieldValues& values = split.fields[kWeightField] = fields::find("numbers").read(Hdf5Source(weights));
    if (values.type.elements() != split.rows()) {
      throw Error(weights.name() + ": expected one weight for each row, found " + to_string(weights.shape()));
    }
  }
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
  if (settings.test_samples.empty() != settings.test_inputs.empty() && !settings.train_inputs.empty()) {
    throw Error("data.test_samples and data.test_inputs go together where data.train_inputs is given; found only one",
                ExitCode::usage);
  }
  if (settings.train_weights.empty() && !settings.test_weights.empty()) {
    throw Error("data.test_weights goes with data.train_weights; give that too", ExitCode::usage);
  }
  if (!settings.test_inputs.empty() && settings.test_inputs.size() != settings.train_inputs.size()) {
    throw Error("data.test_inputs has " + std::to_string(settings.test_inputs.size()) +
                    " arrays and data.train_inputs " + std::to_string(settings.train_inputs.size()) +
                    "; they are the same inputs, in the same order",
                ExitCode::usage);
  }
}

// Names each input after its array, if there are several.
void name_inputs(Dataset& set, const Hdf5Set& settings) {
  if (settings.train_inputs.empty()) return;
  set.fields.input().name = last_part(settings.train_samples);
  for (const std::string& array : settings.train_inputs) {
    const TensorType row = row_type(set.train.fields.at(last_part(array)).type);
    set.fields.fields.push_back({.name = last_part(array), .kind = std::string(fields::input_kind(row)), .type = row});
  }
  std::set<std::string> names;
  for (const Field& field : set.fields) {
    if (names.insert(field.name).second) continue;
    throw Error(set.source + ": two fields are called '" + field.name +
                    "': each of data.train_samples and data.train_inputs gives an input the last part of its path as "
                    "name, and what is learnt is called '" +
                    set.fields.target().name + "'. Give the array another name",
                ExitCode::usage);
  }
}

// Throws Error if the test rows are of other types than the training rows.
void require_same_types(const Dataset& set) {
  if (set.test.rows() == 0) return;
  const auto require = [&](const std::string& what, const TensorType& train, const TensorType& test) {
    if (row_type(train) == row_type(test)) return;
    throw Error(set.source + ": training " + what + " are " + to_string(train) + " and test " + what + " " +
                to_string(test) + "; they may differ in the number of rows alone");
  };
  require("samples", set.train.samples, set.test.samples);
  for (const Field* field : set.fields.of(Role::input)) {
    if (field == &set.fields.input()) continue;
    require("rows of '" + field->name + "'", set.train.fields.at(field->name).type,
            set.test.fields.at(field->name).type);
  }
}

// The columns of a part's targets; of classes, one more than the largest.
int64_t outputs_in(const FieldValues& targets) {
  if (targets.type.shape.size() > 1) return targets.type.shape[1];
  const std::vector<int32_t> classes = fields::numbers_in<int32_t>(targets);
  return classes.empty() ? 0 : int64_t{1} + *std::ranges::max_element(classes);
}

// Arrays have no names for classes, labels or columns.
Field target_of(const Dataset& set, const std::string& kind, const Hdf5Set& settings) {
  const std::string name = fields::target_field(kind, {}).name;
  const FieldValues& train = set.train.fields.at(name);
  int64_t outputs = outputs_in(train);
  if (const auto test = set.test.fields.find(name); test != set.test.fields.end()) {
    const int64_t of_test = outputs_in(test->second);
    if (train.type.shape.size() == 1) {
      outputs = std::max(outputs, of_test);
    } else if (of_test != outputs) {
      throw Error(set.source + ": the training rows have " + std::to_string(outputs) +
                  " targets each and the test rows " + std::to_string(of_test) + "; they must agree");
    }
  }
  const bool one_number = fields::find(kind).is_scaled() && outputs == 1;
  return fields::target_field(kind, one_number ? std::vector{settings.train_labels} : fields::numbered(outputs));
}

Dataset read_arrays(const DataConfig& config) {
  const Hdf5Set settings = settings_for<Hdf5Set>(config);
  Dataset set;
  set.name = "hdf5";
  set.source = config.path.string();
  const ArrayNames train_names{settings.train_samples, settings.train_labels, settings.train_inputs,
                               settings.train_weights};
  const ArrayNames test_names{settings.test_samples, settings.test_labels, settings.test_inputs, settings.test_weights};
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
  set.fields.target() = target_of(set, config.learnt, settings);
  if (!settings.train_weights.empty()) set.fields.fields.push_back(weight_field());
  name_inputs(set, settings);
  require_same_types(set);
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
      optional(texts("train_inputs", &H::train_inputs,
                     "Arrays that models take besides `train_samples`: images, or [rows, features]. Each input has the "
                     "last part of its array's path as its name, as the one of `train_samples` then has, too.")),
      optional(texts("test_inputs", &H::test_inputs,
                     "The same of the test samples. In `test_path`, default: `train_inputs`.")),
      optional(text("train_weights", &H::train_weights,
                    "The array of the training rows' weights, [rows], which multiply their losses.")),
      optional(text("test_weights", &H::test_weights,
                    "The same of the test samples. In `test_path`, default: `train_weights`.")),
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
