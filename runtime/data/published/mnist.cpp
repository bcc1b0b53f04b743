#include "data/published/mnist.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <future>
#include <utility>

#include <zlib.h>

#include "common/input_file.hpp"
#include "data/published/idx.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int kMnistClasses = 10;

// Check sums (CRC-32) of the two sets' test labels. Both sets use the same file names, and a folder of one must not
// be taken for the other.
constexpr uint32_t kMnistLabels = 0xee8604d9;
constexpr uint32_t kFashionLabels = 0x242bc73f;

const std::array<std::string, 4> kFiles = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

// The file under any of the names in use: "x-idx3-ubyte" or "x.idx3-ubyte", packed or not. Empty where there is none.
fs::path find_file(const fs::path& folder, const std::string& name) {
  std::string dotted = name;
  dotted[dotted.rfind("-idx")] = '.';
  for (const std::string& stem : {name, dotted}) {
    for (const char* ending : {"", ".gz"}) {
      fs::path file = folder / (stem + ending);
      if (is_file(file)) return file;
    }
  }
  return {};
}

fs::path require_file(const fs::path& folder, const std::string& name) {
  fs::path file = find_file(folder, name);
  if (file.empty()) throw Error(folder.string() + " has no " + name + " and no " + name + ".gz", ExitCode::missing);
  return file;
}

std::string why_not_in(const fs::path& folder, const char* other_name, uint32_t other_labels) {
  if (!is_folder(folder)) return "no such folder";
  for (const std::string& name : kFiles) {
    if (find_file(folder, name).empty()) return "has no " + name + "[.gz]";
  }
  try {
    const IdxArray labels = read_idx(find_file(folder, kFiles[3]), 1, 1 << 20);
    const auto* bytes = reinterpret_cast<const Bytef*>(labels.values.data());
    const uLong sum = crc32(0, bytes, static_cast<uInt>(labels.values.size()));
    if (sum == other_labels) return std::string("holds ") + other_name;
  } catch (const Error&) {
    return {};  // it is here but damaged: reading it tells what is wrong
  }
  return {};
}

Dataset read_folder(const fs::path& folder, const char* name, std::vector<std::string> class_names, double mean,
                    double stddev) {
  Dataset set;
  set.name = name;
  set.source = folder.string();
  // The test part unpacks beside the training part.
  std::future<Split> test = std::async(std::launch::async, [&folder] { return read_mnist_split(folder, "t10k"); });
  set.train = read_mnist_split(folder, "train");
  set.test = test.get();
  const Shape& train = set.train.samples.shape;
  const Shape& part = set.test.samples.shape;
  if (train[2] != part[2] || train[3] != part[3]) {
    throw Error(folder.string() + ": training images are " + to_string(train) + " and test images " + to_string(part) +
                "; heights and widths must agree");
  }
  set.fields.target() = fields::target_field("class", std::move(class_names));
  set.fields.input().mean = {mean};
  set.fields.input().stddev = {stddev};
  set.fields.input().light_on_dark = true;
  return set;
}

Dataset read_mnist(const fs::path& folder, const DataConfig& /*config*/) {
  return read_folder(folder, "mnist", {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, 0.1307, 0.3081);
}

Dataset read_fashion_mnist(const fs::path& folder, const DataConfig& /*config*/) {
  return read_folder(
      folder, "fashion_mnist",
      {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"},
      0.2860, 0.3530);
}

// Of both sets.
DatasetSizes published_mnist_sizes(const DataConfig& /*config*/) {
  return {.train = {DType::u8, {60000, 1, 28, 28}},
          .test = {DType::u8, {10000, 1, 28, 28}},
          .target = fields::target_field("class", fields::numbered(kMnistClasses))};
}

}  // namespace

Split read_mnist_split(const fs::path& folder, const std::string& part) {
  const fs::path image_file = require_file(folder, part + "-images-idx3-ubyte");
  const fs::path label_file = require_file(folder, part + "-labels-idx1-ubyte");
  const IdxArray labels = read_idx(label_file, 1);
  IdxArray images = read_idx(image_file, 3);
  const Shape& shape = images.type.shape;
  if (shape[0] != labels.type.shape[0]) {
    throw Error(image_file.string() + " holds " + std::to_string(shape[0]) + " images and " + label_file.string() +
                " " + std::to_string(labels.type.shape[0]) + " labels; they must agree");
  }
  if (images.values.empty()) throw Error(image_file.string() + " holds no images: its header says " + to_string(shape));

  Split split;
  split.samples = {DType::u8, {shape[0], 1, shape[1], shape[2]}};
  split.values = std::move(images.values);
  std::vector<int32_t> classes;
  classes.reserve(labels.values.size());
  for (std::size_t row = 0; row < labels.values.size(); ++row) {
    const int label = std::to_integer<int>(labels.values[row]);
    if (label >= kMnistClasses) {
      throw Error(label_file.string() + ": the label of row " + std::to_string(row) + " is " + std::to_string(label) +
                  "; expected 0 to " + std::to_string(kMnistClasses - 1));
    }
    classes.push_back(label);
  }
  split.fields[kLabelField] = fields::class_values(classes);
  return split;
}

DatasetRow mnist_row() {
  DatasetRow row;
  row.name = "mnist";
  row.description = "handwritten digits, 60000 train and 10000 test images of 28x28, 10 classes";
  row.folder_names = {"mnist", "MNIST", "MNIST/raw"};
  row.mirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                 "https://storage.googleapis.com/cvdf-datasets/mnist/"};
  row.files = {
      {kFiles[0] + ".gz", 47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
      {kFiles[1] + ".gz", 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
      {kFiles[2] + ".gz", 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
      {kFiles[3] + ".gz", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
  };
  row.sizes = published_mnist_sizes;
  row.stand_in = "digits";
  row.why_not_in = [](const fs::path& folder) { return why_not_in(folder, "fashion_mnist", kFashionLabels); };
  row.read = read_mnist;
  return row;
}

DatasetRow fashion_mnist_row() {
  DatasetRow row;
  row.name = "fashion_mnist";
  row.description = "clothes, 60000 train and 10000 test images of 28x28, 10 classes";
  row.folder_names = {"fashion_mnist", "fashion-mnist", "FashionMNIST", "FashionMNIST/raw"};
  row.system_folders = {"/usr/share/datasets/fashion-mnist"};  // Debian's package dataset-fashion-mnist
  row.mirrors = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                 "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"};
  row.files = {
      {kFiles[0] + ".gz", 47040016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
      {kFiles[1] + ".gz", 60008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
      {kFiles[2] + ".gz", 7840016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
      {kFiles[3] + ".gz", 10008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
  };
  row.sizes = published_mnist_sizes;
  row.stand_in = "digits";
  row.why_not_in = [](const fs::path& folder) { return why_not_in(folder, "mnist", kMnistLabels); };
  row.read = read_fashion_mnist;
  return row;
}

}  // namespace gpunn::data
