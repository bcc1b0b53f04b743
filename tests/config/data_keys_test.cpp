// The keys of data that go with some data sets alone.
#include <gpunn/error.hpp>
#include <gpunn/experiment.hpp>

#include <variant>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

std::string with_data(const std::string& data) {
  return "model: {layers: [linear: {units: 2}]}\ndata: {" + data + "}\n";
}

DataConfig data_of(const std::string& data) { return parse_experiment(with_data(data), "e.yaml").data; }
ImageFolderSet images_of(const std::string& data) { return std::get<ImageFolderSet>(data_of(data).kind); }

}  // namespace

TEST_CASE("keys of other data sets are told") {
  CHECK(errors_of(with_data("dataset: mnist, label_mode: coarse")) ==
        Texts{"e.yaml:2:24: data mnist has no 'label_mode'; that is for cifar100"});
  CHECK(errors_of(with_data("dataset: cifar10, test_fraction: 0.1")) ==
        Texts{"e.yaml:2:26: data cifar10 has no 'test_fraction'; that is for image_folder, hdf5, csv, "
              "photograph_folder, detection_folder, segmentation_folder"});
  CHECK(errors_of(with_data("dataset: cifar100, label_mode: fine, validation_fraction: 0.1")).empty());
  CHECK(errors_of(with_data("dataset: cifar, label_mode: coarse")) ==
        Texts{"e.yaml:2:17: data.dataset: expected one of " + choices_of("data.dataset") +
              ", found 'cifar'; did you mean 'cifar10'?"});
}

TEST_CASE("the user's own data needs a path, and the test samples one place") {
  for (const char* const kind : {"image_folder", "hdf5", "csv"}) {
    const std::string name = std::string("dataset: ") + kind;
    CHECK(errors_of(with_data(name)) ==
          Texts{"e.yaml:2:8: data.dataset " + std::string(kind) + " needs data.path, where your data is"});
    CHECK(errors_of(with_data(name + ", path: x")).empty());
    CHECK(errors_of(with_data(name + ", path: x, test_path: y, test_fraction: 0.1")).size() == 1);
  }
}

TEST_CASE("a set that is made may be asked for where it is the fallback, as --set data.dataset=digits does") {
  const DataConfig data = data_of("dataset: digits, offline_fallback: digits");
  CHECK(data.dataset == "digits");
  CHECK(data.offline_fallback == "digits");
}

TEST_CASE("the size of images is one or two integers") {
  const std::string folder = "dataset: image_folder, path: x, image_size: ";
  CHECK(images_of(folder + "32").image_size == std::vector<int64_t>{32, 32});
  CHECK(images_of(folder + "[24, 32]").image_size == std::vector<int64_t>{24, 32});
  for (const char* const wrong : {"[1, 2, 3]", "[24.5, 32]", "24.5"}) {
    CHECK(errors_of(with_data(folder + wrong)) ==
          Texts{"e.yaml:2:40: data.image_size: expected one integer or two, [rows, columns]"});
  }
  CHECK(errors_of(with_data(folder + "0")).size() == 1);
  CHECK(errors_of(with_data("dataset: image_folder, path: x, channels: 2")).size() == 1);
}

TEST_CASE("the shorter side of images is at least as long as what is cut out of them") {
  const std::string folder = "dataset: image_folder, path: x, shorter_side: ";
  CHECK(images_of(folder + "256, image_size: 224").shorter_side == 256);
  CHECK(images_of(folder + "32, image_size: [24, 32]").shorter_side == 32);
  CHECK(errors_of(with_data(folder + "31, image_size: [24, 32]")) ==
        Texts{"e.yaml:2:40: data.shorter_side: expected at least 32, the longer side of data.image_size, found 31"});
  CHECK(errors_of(with_data(folder + "31")) ==
        Texts{"e.yaml:2:40: data.shorter_side needs data.image_size, which is cut out of the scaled image"});
}

TEST_CASE("what is resolved reads back") {
  const Experiment e = parse_experiment(
      with_data("dataset: image_folder, path: /x, image_size: 32, channels: 1, test_fraction: 0.25, stratify: false"),
      "e.yaml");
  const DataConfig again = parse_experiment(resolved_yaml(e), "again").data;
  CHECK(std::get<ImageFolderSet>(again.kind).image_size == std::vector<int64_t>{32, 32});
  CHECK(std::get<ImageFolderSet>(again.kind).channels == 1);
  CHECK(again.test_fraction == 0.25);
  CHECK(!again.stratify);
  CHECK(again.path == "/x");
  const Experiment table = parse_experiment(
      with_data("dataset: csv, path: /x, delimiter: tab, header: false, label_column: \"3\""), "e.yaml");
  const auto csv = std::get<CsvSet>(parse_experiment(resolved_yaml(table), "again").data.kind);
  CHECK(csv.delimiter == Delimiter::tab);
  CHECK(!csv.header);
  CHECK(csv.label_column == "3");
}
