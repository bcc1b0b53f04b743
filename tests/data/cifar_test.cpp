#include <gpunn/data.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "catch.hpp"
#include "cifar_files.hpp"
#include "data/download/tar.hpp"

using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::load_dataset;
using test::write_file;

namespace {

DataConfig config_of(const std::string& name, const test::fs::path& path) {
  DataConfig config;
  config.dataset = name;
  config.path = path;
  return config;
}

int pixel(const gpunn::Split& split, int64_t row, int64_t at) {
  return std::to_integer<int>(split.values[static_cast<std::size_t>(row * 3072 + at)]);
}

void check_small_cifar10(const Dataset& set) {
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::u8, {100, 3, 32, 32}});
  CHECK(set.test.samples == gpunn::TensorType{gpunn::DType::u8, {20, 3, 32, 32}});
  for (int64_t row = 0; row < 100; ++row) {
    CHECK(labels_of(set.train)[static_cast<std::size_t>(row)] == row % 10);
    CHECK(pixel(set.train, row, 0) == row);
    CHECK(pixel(set.train, row, 3071) == row);
  }
  CHECK(set.fields.target().count() == 10);
  CHECK(set.fields.target().names[3] == "cat");
  CHECK(set.fields.input().mean.size() == 3);
  CHECK(set.notes.size() == 1);  // not as many images as the published set
}

}  // namespace

TEST_CASE("CIFAR-10 is read from its binary files, wherever they are unpacked") {
  const test::BareMachine bare;
  const test::TemporaryFolder folder;
  const std::string beneath = GENERATE("", "cifar-10-batches-bin", "cifar10", "cifar10/cifar-10-batches-bin");
  test::write_files(folder / beneath, test::cifar10_files());
  check_small_cifar10(load_dataset(config_of("cifar10", folder.path())));
  const test::Variable data_dir("GPUNN_DATA_DIR", folder.path().string());
  check_small_cifar10(load_dataset(config_of("cifar10", {})));
}

TEST_CASE("CIFAR-10 is read from the published archive as it is") {
  const test::BareMachine bare;
  test::NamedFiles files = test::cifar10_files();
  std::reverse(files.begin(), files.end());  // the archive's order is not specified
  files.insert(files.begin(), {"readme.html", "<html>"});
  const std::string archive = test::tar("cifar-10-batches-bin/", files);
  const test::fs::path file = bare.home / "gpunn/cifar10/cifar-10-binary.tar.gz";
  SECTION("whole") {
    write_file(file, test::gzip(archive));
    const Dataset set = load_dataset(config_of("cifar10", {}));
    check_small_cifar10(set);
    CHECK(set.source == file);
  }
  SECTION("cut short") {
    write_file(file, test::gzip(archive.substr(0, 200000)));
    CHECK_THROWS_WITH(load_dataset(config_of("cifar10", {})),
                      Contains("cifar-10-binary.tar.gz") && Contains("ends inside 'cifar-10-batches-bin/data_batch_"));
  }
  SECTION("without a batch") {
    files.pop_back();
    write_file(file, test::gzip(test::tar("", files)));
    CHECK_THROWS_WITH(load_dataset(config_of("cifar10", {})), Contains("has no data_batch_1.bin"));
  }
  SECTION("a batch that claims more than the archive can hold") {
    std::string lying = test::tar("", {{"data_batch_1.bin", "x"}});
    lying.replace(124, 11, "77777777777");
    unsigned sum = 0;
    lying.replace(148, 8, std::string(8, ' '));
    for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(lying[i]);
    std::array<char, 8> text = {};
    std::snprintf(text.data(), text.size(), "%06o", sum);
    lying.replace(148, 7, text.data(), 7);
    write_file(file, lying);
    CHECK_THROWS_WITH(load_dataset(config_of("cifar10", {})), Contains("larger than the archive can hold"));
  }
  SECTION("no archive at all") {
    write_file(file, test::counting_bytes(5000));
    CHECK_THROWS_WITH(load_dataset(config_of("cifar10", {})), Contains("no valid header"));
  }
}

TEST_CASE("CIFAR-100 has fine and coarse labels") {
  const test::BareMachine bare;
  const test::TemporaryFolder folder;
  test::write_files(folder / "cifar-100-binary",
                    {{"train.bin", test::cifar100_batch(150)}, {"test.bin", test::cifar100_batch(100)}});
  DataConfig config = config_of("cifar100", folder.path());
  const Dataset fine = load_dataset(config);
  CHECK(fine.fields.target().count() == 100);
  CHECK(fine.fields.target().names.size() == 100);
  CHECK(labels_of(fine.train)[149] == 49);
  CHECK(fine.fields.target().names[99] == "worm");
  CHECK(pixel(fine.train, 7, 1023) == 7);
  CHECK(pixel(fine.train, 7, 1024) == 57);
  config.kind = gpunn::Cifar100Set{.label_mode = gpunn::LabelMode::coarse};
  const Dataset coarse = load_dataset(config);
  CHECK(coarse.fields.target().count() == 20);
  CHECK(labels_of(coarse.train)[149] == 9);
  CHECK(coarse.fields.target().names[1] == "fish");
  CHECK(coarse.train.values == fine.train.values);
}

TEST_CASE("CIFAR files that are damaged are refused") {
  const test::BareMachine bare;
  const test::TemporaryFolder folder;
  test::write_files(folder.path(), test::cifar10_files());
  const auto load = [&] { return load_dataset(config_of("cifar10", folder.path())); };
  SECTION("a batch that ends inside a record") {
    test::fs::resize_file(folder / "data_batch_3.bin", 3073 * 19 + 5);
    CHECK_THROWS_WITH(load(), Contains("data_batch_3.bin") && Contains("19 records and 5 bytes"));
  }
  SECTION("a batch that ends behind a record") {
    test::fs::resize_file(folder / "data_batch_3.bin", 3073 * 19);
    CHECK_THROWS_WITH(load(), Contains("data_batch_1.bin holds 20 images and data_batch_3.bin 19"));
  }
  SECTION("a batch that is far too large") {
    test::fs::resize_file(folder / "data_batch_3.bin", uintmax_t{3073} * 1000000);  // a hole, on most file systems
    CHECK_THROWS_WITH(load(), Contains("data_batch_3.bin") && Contains("at most 256.0 MiB, found 2.9 GiB"));
  }
  SECTION("an empty batch") {
    write_file(folder / "test_batch.bin", "");
    CHECK_THROWS_WITH(load(), Contains("test_batch.bin") && Contains("found 0 bytes"));
  }
  SECTION("a label beyond the classes") {
    std::string batch = test::cifar10_batch(20);
    batch[3073 * 4] = 10;
    write_file(folder / "data_batch_2.bin", batch);
    CHECK_THROWS_WITH(load(), Contains("data_batch_2.bin: the label of record 4 is 10; expected 0 to 9"));
  }
  SECTION("a batch that is missing") {
    test::fs::remove(folder / "data_batch_5.bin");
    CHECK_THROWS_WITH(load(), Contains("has no data_batch_5.bin and no cifar-10-binary.tar.gz"));
    CHECK(test::code_of(load) == gpunn::ExitCode::missing);
  }
}

TEST_CASE("the real CIFAR-10 is read") {
  const test::fs::path folder = test::real_data();
  const test::Variable offline("GPUNN_OFFLINE", "1");
  DataConfig config = config_of("cifar10", folder);
  Dataset set;
  try {
    set = load_dataset(config);
  } catch (const gpunn::Error&) {
    std::cout << "skipped: real CIFAR-10 (set GPUNN_DATA_DIR to a folder with cifar-10-batches-bin)\n";
    return;
  }
  CHECK(set.train.samples.shape == gpunn::Shape{50000, 3, 32, 32});
  CHECK(set.notes.empty());
  const gpunn::SplitSummary summary = gpunn::summarize(set.train, set.fields);
  CHECK(summary.fields.at("label").counts == std::vector<int64_t>(10, 5000));
  // JPEG copies differ from the originals by little.
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(std::abs(summary.channels[c].mean / 255 - set.fields.input().mean[c]) < 0.002);
    CHECK(std::abs(summary.channels[c].stddev / 255 - set.fields.input().stddev[c]) < 0.01);
  }
}
