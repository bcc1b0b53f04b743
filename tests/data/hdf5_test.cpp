#include "storage/hdf5.hpp"

#include <gpunn/data.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "catch.hpp"
#include "common/files.hpp"
#include "files.hpp"

using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::Hdf5Set;
using gpunn::load_dataset;
using gpunn::storage::Handle;
using gpunn::storage::Hdf5Session;
using test::value;
using Dims = std::vector<hsize_t>;

namespace {

// A file that is written array by array, then read as a data set.
struct File {
  test::TemporaryFolder folder;
  DataConfig config;
  File() {
    config.dataset = "hdf5";
    config.path = folder / "set.h5";
    config.kind = Hdf5Set();
    arrays().train_samples = "train/x";
    arrays().train_labels = "train/y";
    const Hdf5Session session;
    const Handle file(H5Fcreate(config.path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose, "create");
  }

  Hdf5Set& arrays() { return std::get<Hdf5Set>(config.kind); }

  // `chunk`: stored in packed chunks of so many rows. No values: declared and never written.
  template <class T>
  void put(const std::string& name, hid_t type, const Dims& dims, const std::vector<T>& values, hsize_t chunk = 0) {
    const Hdf5Session session;
    const Handle file(H5Fopen(config.path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose, "open");
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "link");
    H5Pset_create_intermediate_group(links, 1);
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "creation");
    if (chunk > 0) {
      Dims chunks = dims;
      chunks[0] = chunk;
      H5Pset_chunk(creation, static_cast<int>(chunks.size()), chunks.data());
      H5Pset_deflate(creation, 6);
    }
    const Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose, "space");
    if (H5Lexists(file, name.substr(0, name.find('/')).c_str(), H5P_DEFAULT) > 0 &&
        H5Lexists(file, name.c_str(), H5P_DEFAULT) > 0) {
      H5Ldelete(file, name.c_str(), H5P_DEFAULT);
    }
    const Handle array(H5Dcreate2(file, name.c_str(), type, space, links, creation, H5P_DEFAULT), H5Dclose, "array");
    if (!values.empty()) H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }

  void put_bytes(const std::string& name, const Dims& dims, hsize_t chunk = 0) {
    std::vector<uint8_t> values(std::accumulate(dims.begin(), dims.end(), hsize_t{1}, std::multiplies<>()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i);
    put(name, H5T_NATIVE_UINT8, dims, values, chunk);
  }
  void put_labels(const std::string& name, const std::vector<int64_t>& labels) {
    put(name, H5T_NATIVE_INT64, {labels.size()}, labels);
  }
  Dataset load() const { return load_dataset(config); }
};

}  // namespace

TEST_CASE("arrays of images in HDF5, whichever way they lie") {
  File file;
  file.put_labels("train/y", {0, 2, 1, 0});
  SECTION("grey, packed in chunks") {
    file.put_bytes("train/x", {4, 5, 6}, 3);
    const Dataset set = file.load();
    CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::u8, {4, 1, 5, 6}});
    CHECK(labels_of(set.train) == std::vector<int32_t>{0, 2, 1, 0});
    CHECK(set.fields.target().count() == 3);
    for (std::size_t i = 0; i < 120; ++i) CHECK(value(set.train, i) == static_cast<int>(i));
  }
  SECTION("channels first") {
    file.put_bytes("train/x", {4, 3, 5, 6});
    const Dataset set = file.load();
    CHECK(set.train.samples.shape == gpunn::Shape{4, 3, 5, 6});
    CHECK(value(set.train, 250) == 250);
    CHECK(set.fields.input().mean.size() == 3);
  }
  SECTION("channels last") {
    file.put_bytes("train/x", {4, 2, 2, 3});
    const Dataset set = file.load();
    CHECK(set.train.samples.shape == gpunn::Shape{4, 3, 2, 2});
    const std::vector<int> second = {12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23};
    for (std::size_t i = 0; i < 12; ++i) CHECK(value(set.train, 12 + i) == second[i]);
  }
  SECTION("a layout that only the user knows") {
    file.put_bytes("train/x", {4, 3, 2, 3});
    CHECK_THROWS_WITH(file.load(), Contains("[4, 3, 2, 3]") && Contains("data.layout"));
    file.arrays().layout = gpunn::ImageLayout::channels_last;
    CHECK(file.load().train.samples.shape == gpunn::Shape{4, 3, 3, 2});
    file.arrays().layout = gpunn::ImageLayout::channels_first;
    CHECK(file.load().train.samples.shape == gpunn::Shape{4, 3, 2, 3});
  }
}

TEST_CASE("numbers other than bytes become floats that hold them, and labels may be a column") {
  File file;
  file.put<double>("train/x", H5T_NATIVE_DOUBLE, {3, 2}, {1, 2.5, -3, 4, 5, 6});
  file.put<int8_t>("train/y", H5T_NATIVE_INT8, {3, 1}, {1, 0, 1});
  file.put<int32_t>("x_test", H5T_NATIVE_INT32, {1, 2}, {7, -8});
  file.put_labels("y_test", {3});
  file.arrays().test_samples = "x_test";
  file.arrays().test_labels = "/y_test";
  const Dataset set = file.load();
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::f64, {3, 2}});
  std::vector<double> wide(6);
  std::memcpy(wide.data(), set.train.values.data(), 48);
  CHECK(wide == std::vector<double>{1, 2.5, -3, 4, 5, 6});
  CHECK(set.test.samples.dtype == gpunn::DType::f64);  // f32 rounds an i32
  CHECK(labels_of(set.train) == std::vector<int32_t>{1, 0, 1});
  CHECK(labels_of(set.test) == std::vector<int32_t>{3});
  CHECK(set.fields.target().count() == 4);

  // As h5py writes NumPy's bools.
  const Handle bools(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose, "an enumeration");
  for (const auto& [name, number] : {std::pair{"FALSE", int8_t{0}}, std::pair{"TRUE", int8_t{1}}}) {
    H5Tenum_insert(bools, name, &number);
  }
  file.put<int8_t>("train/y", bools, {3}, {1, 0, 1});
  CHECK(labels_of(file.load().train) == std::vector<int32_t>{1, 0, 1});
  file.put<int8_t>("train/x", bools, {3, 2}, {1, 0, 0, 0, 1, 1});
  const Dataset of_bools = file.load();
  CHECK(of_bools.train.samples == gpunn::TensorType{gpunn::DType::f32, {3, 2}});
  std::vector<float> values(6);
  std::memcpy(values.data(), of_bools.train.values.data(), 24);
  CHECK(values == std::vector<float>{1, 0, 0, 0, 1, 1});

  File other;
  other.put<double>("train/x", H5T_NATIVE_DOUBLE, {1, 2}, {1, 2});
  other.put_labels("train/y", {0});
  file.config.test_path = other.config.path;
  file.arrays().test_samples.clear();
  file.arrays().test_labels.clear();
  CHECK(file.load().test.rows() == 1);
}

TEST_CASE("HDF5 files that don't hold a data set are refused, and say what they hold") {
  File file;
  file.put_bytes("train/x", {4, 5, 6});
  file.put_labels("train/y", {0, 2, 1, 0});
  const auto fails = [&](const std::string& text) { CHECK_THROWS_WITH(file.load(), Contains(text)); };
  SECTION("names that are missing or wrong") {
    file.arrays().train_samples = "train/X";
    fails("there is no array 'train/X'; it has train/x u8[4, 5, 6], train/y i64[4]");
    file.arrays().train_samples = "no/where/x";
    fails("there is no array 'no/where/x'");
    file.arrays().train_samples = "train";
    fails("open 'train' as an array");
    file.arrays().train_samples.clear();
    fails("have to name arrays");
    CHECK(test::code_of([&] { file.load(); }) == gpunn::ExitCode::usage);
    file.arrays().train_samples = "train/x";
    file.arrays().test_labels = "train/y";
    fails("go together");
  }
  SECTION("labels that disagree") {
    file.put_labels("train/y", {0, 2, 1});
    fails("'train/x' has 4 rows and 'train/y' 3");
    file.put_labels("train/y", {0, 2, -1, 0});
    fails("the class of row 2 is -1");
    file.put_labels("train/y", {0, 2, 1, 10000});
    fails("the class of row 3 is 10000");
    file.put<float>("train/y", H5T_NATIVE_FLOAT, {4}, {0, 1, 0, 1});
    fails("expected classes as integers");
    file.put_bytes("train/y", {4, 10});
    fails("one-hot");
  }
  SECTION("arrays of another rank or type") {
    file.put_bytes("train/x", {4});
    fails("array 'train/x': expected samples of [rows, features]");
    file.put_bytes("train/x", {4, 1, 1, 1, 1});
    fails("found [4, 1, 1, 1, 1]");
    file.put<uint8_t>("train/x", H5T_NATIVE_UINT8, {0, 3}, {});
    fails("it is empty");
  }
  SECTION("text") {
    {
      const Hdf5Session session;
      const Handle text(H5Tcopy(H5T_C_S1), H5Tclose, "text");
      H5Tset_size(text, 4);
      const Handle open(H5Fopen(file.config.path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose, "open");
      const Dims dims = {4};
      const Handle space(H5Screate_simple(1, dims.data(), nullptr), H5Sclose, "space");
      const Handle array(H5Dcreate2(open, "words", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose, "a");
    }
    file.arrays().train_samples = "words";
    fails("expected numbers, found text");
  }
  SECTION("values that are not finite") {
    file.put<float>("train/x", H5T_NATIVE_FLOAT, {4, 2}, {1, 2, 3, 4, 5, std::nanf(""), 7, 8});
    fails("row 2 has NaN");
    file.put<double>("train/x", H5T_NATIVE_DOUBLE, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 1e200});
    fails("row 3 has 1e+200, which is beyond f32");
  }
  SECTION("a shape that the file can't back") {
    file.put<uint8_t>("train/x", H5T_NATIVE_UINT8, {4, 60000, 60000}, {}, 1);
    fails("[4, 60000, 60000] promises 13.4 GiB");
  }
  SECTION("test samples of another shape") {
    file.put_bytes("test/x", {4, 5, 7});
    file.arrays().test_samples = "test/x";
    file.arrays().test_labels = "train/y";
    fails("training samples are u8[4, 1, 5, 6] and test samples u8[4, 1, 5, 7]");
  }
  SECTION("no HDF5") {
    test::write_file(file.config.path, "PK\x03\x04");
    fails("it is not an HDF5 file");
    file.config.path = file.folder / "none.h5";
    fails("no such file");
    CHECK(test::code_of([&] { file.load(); }) == gpunn::ExitCode::missing);
  }
  SECTION("damaged anywhere, it is read or refused") {
    const std::string whole = test::read_file(file.config.path);
    for (std::size_t at = 0; at < whole.size(); at += whole.size() / 300 + 1) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x5A);
      test::write_file(file.config.path, bytes);
      std::size_t values = 120;
      try {
        const Dataset set = file.load();
        values = set.train.values.size();
        CHECK(set.train.samples.bytes() == values);
      } catch (const gpunn::Error&) {
      }
      CHECK(values > 0);
    }
  }
}

// Files of the older format, as h5py writes them by default: libhdf5 1.10.8 crashes on some of these.
TEST_CASE("no byte of an HDF5 file's structure, changed, ends the program") {
  File file;
  file.put_bytes("train/x", {8, 5, 5}, 4);
  file.put_labels("train/y", {0, 1, 0, 1, 0, 1, 0, 1});
  file.config.test_fraction = 0.25;
  const std::string sound = gpunn::read_text(file.config.path);
  CHECK(load_dataset(file.config).train.rows() == 6);
  int refused = 0;
  for (std::size_t place = 0; place < sound.size(); place += place < 200 ? 1 : 61) {
    std::string damaged = sound;
    damaged[place] = static_cast<char>(place % 2 == 0 ? damaged[place] ^ 0xFF : damaged[place] + 1);
    gpunn::write_atomically(file.config.path, damaged);
    try {
      load_dataset(file.config);
    } catch (const gpunn::Error& error) {
      CHECK_THAT(error.what(), Contains("set.h5"));
      ++refused;
    }
  }
  CHECK(refused > 20);
}
