#include "data/published/mnist.hpp"

#include <gpunn/data.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <numeric>

#include "catch.hpp"
#include "data/download/digest.hpp"
#include "data/download/http.hpp"
#include "files.hpp"

using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::load_dataset;
using test::gzip;
using test::idx;
using test::write_file;

namespace {

DataConfig mnist_config(const std::string& name, const test::fs::path& path = {}) {
  DataConfig config;
  config.dataset = name;
  config.path = path;
  return config;
}

// Against what the published files are known to hold.
void check_real(const Dataset& set, double mean, double stddev) {
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::u8, {60000, 1, 28, 28}});
  CHECK(set.test.samples == gpunn::TensorType{gpunn::DType::u8, {10000, 1, 28, 28}});
  CHECK(set.train.values.size() == 47040000);
  CHECK(labels_of(set.train).size() == 60000);
  CHECK(labels_of(set.test).size() == 10000);
  CHECK(set.fields.target().count() == 10);
  CHECK(set.fallback_of.empty());
  double sum = 0, squares = 0;
  for (const std::byte pixel : set.train.values) {
    const double value = std::to_integer<int>(pixel) / 255.0;
    sum += value;
    squares += value * value;
  }
  const double count = 47040000;
  CHECK(std::abs(sum / count - mean) < 1e-4);
  CHECK(std::abs(std::sqrt(squares / count - sum / count * sum / count) - stddev) < 1e-4);
  CHECK(set.fields.input().mean == std::vector<double>{mean});
  CHECK(set.fields.input().stddev == std::vector<double>{stddev});
}

void check_digests(const gpunn::data::DatasetRow& row, const test::fs::path& folder) {
  if (!gpunn::data::http_supported()) return;
  for (const gpunn::data::RemoteFile& file : row.files) {
    CHECK(gpunn::data::sha256_of_unpacked(folder / file.name, file.bytes) == file.sha256);
  }
}

std::vector<int32_t> first_of(std::vector<int32_t> labels, std::size_t count) {
  labels.resize(count);
  return labels;
}

}  // namespace

TEST_CASE("the real MNIST is read") {
  const test::fs::path folder = test::real_data();
  if (folder.empty()) {
    std::cout << "skipped: real MNIST (set GPUNN_DATA_DIR)\n";
    return;
  }
  const Dataset set = load_dataset(mnist_config("mnist", folder));
  check_real(set, 0.1307, 0.3081);
  CHECK(first_of(labels_of(set.train), 8) == std::vector<int32_t>{5, 0, 4, 1, 9, 2, 1, 3});
  CHECK(first_of(labels_of(set.test), 4) == std::vector<int32_t>{7, 2, 1, 0});
  check_digests(gpunn::data::mnist_row(), set.source);

  // Neither set is taken for the other, though their files have the same names.
  const test::BareMachine bare;
  const test::Variable data_dir("GPUNN_DATA_DIR", set.source);
  for (const gpunn::DatasetInfo& info : gpunn::list_datasets()) {
    if (info.name == "mnist") CHECK(info.found == set.source);
    if (info.name == "fashion_mnist") CHECK(info.found != set.source);
  }
}

TEST_CASE("the real Fashion-MNIST is found where the distribution installs it") {
  const gpunn::data::DatasetRow row = gpunn::data::fashion_mnist_row();
  if (!test::fs::is_directory(row.system_folders[0])) {
    std::cout << "skipped: real Fashion-MNIST (install dataset-fashion-mnist)\n";
    return;
  }
  const test::BareMachine bare;
  const Dataset set = load_dataset(mnist_config("fashion_mnist"));
  CHECK(set.source == row.system_folders[0]);
  check_real(set, 0.2860, 0.3530);
  CHECK(set.fields.target().names[static_cast<std::size_t>(labels_of(set.train)[0])] == "Ankle boot");
  check_digests(row, set.source);
  CHECK_THROWS_WITH(load_dataset(mnist_config("mnist", set.source)), Contains("holds fashion_mnist"));
}

TEST_CASE("MNIST's files are found under every name in use") {
  const test::BareMachine bare;
  const bool packed = GENERATE(true, false);
  const char separator = GENERATE('-', '.');
  const test::TemporaryFolder folder;
  test::write_mnist(folder.path(), 30, 20, packed, separator);
  const Dataset set = load_dataset(mnist_config("mnist", folder.path()));
  CHECK(set.train.rows() == 30);
  CHECK(set.test.rows() == 20);
  CHECK(labels_of(set.train)[13] == 3);
  const std::string pixels = test::counting_bytes(30 * 784);
  CHECK(std::memcmp(set.train.values.data(), pixels.data(), pixels.size()) == 0);
}

TEST_CASE("limits keep the first rows") {
  const test::BareMachine bare;
  const test::TemporaryFolder folder;
  test::write_mnist(folder.path(), 30, 20);
  DataConfig config = mnist_config("mnist", folder.path());
  config.train_limit = 7;
  config.test_limit = 1000;
  const Dataset set = load_dataset(config);
  CHECK(set.train.samples.shape == gpunn::Shape{7, 1, 28, 28});
  CHECK(set.train.values.size() == 7 * 784);
  CHECK(labels_of(set.train).size() == 7);
  CHECK(set.test.rows() == 20);
  config.train_limit = -1;
  CHECK_THROWS_WITH(load_dataset(config), Contains("data.train_limit is -1"));
}

TEST_CASE("a folder of MNIST files that don't fit together is refused") {
  const test::BareMachine bare;
  const test::TemporaryFolder folder;
  test::write_mnist(folder.path(), 30, 20);
  const auto load = [&] { return load_dataset(mnist_config("mnist", folder.path())); };
  SECTION("images and labels differ in number") {
    write_file(folder / "train-labels-idx1-ubyte.gz", gzip(idx({29}, std::string(29, '\1'))));
    CHECK_THROWS_WITH(load(), Contains("30 images") && Contains("29 labels"));
  }
  SECTION("a label beyond the classes") {
    std::string labels(20, '\1');
    labels[11] = '\x0a';
    write_file(folder / "t10k-labels-idx1-ubyte.gz", gzip(idx({20}, labels)));
    CHECK_THROWS_WITH(load(), Contains("label of row 11 is 10") && Contains("0 to 9"));
  }
  SECTION("test images of another size") {
    write_file(folder / "t10k-images-idx3-ubyte.gz", gzip(idx({20, 14, 14}, std::string(20 * 196, '\1'))));
    CHECK_THROWS_WITH(load(), Contains("[30, 1, 28, 28]") && Contains("[20, 1, 14, 14]"));
  }
  SECTION("no images") {
    write_file(folder / "t10k-images-idx3-ubyte.gz", gzip(idx({0, 28, 28}, "")));
    write_file(folder / "t10k-labels-idx1-ubyte.gz", gzip(idx({0}, "")));
    CHECK_THROWS_WITH(load(), Contains("holds no images"));
  }
  SECTION("a truncated file is an error, and no reason to fall back") {
    const test::fs::path file = folder / "train-images-idx3-ubyte.gz";
    test::fs::resize_file(file, test::fs::file_size(file) / 2);
    DataConfig config = mnist_config("mnist", folder.path());
    config.offline_fallback = "digits";
    CHECK_THROWS_WITH(load_dataset(config), Contains("train-images-idx3-ubyte.gz") && Contains("ends early"));
  }
  SECTION("labels where images belong") {
    test::fs::copy_file(folder / "train-labels-idx1-ubyte.gz", folder / "train-images-idx3-ubyte.gz",
                        test::fs::copy_options::overwrite_existing);
    CHECK_THROWS_WITH(load(), Contains("expected 3 dimension(s), found 1"));
  }
}
