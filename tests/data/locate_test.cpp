#include "data/download/locate.hpp"

#include <gpunn/data.hpp>

#include <algorithm>

#include "catch.hpp"
#include "data/published/mnist.hpp"
#include "files.hpp"

using gpunn::DataConfig;
using gpunn::load_dataset;
using gpunn::data::locate;

TEST_CASE("a set is looked for in the experiment's path, GPUNN_DATA_DIR and the cache, in this order") {
  const test::BareMachine bare;
  const test::TemporaryFolder path, data_dir;
  const gpunn::data::DatasetRow row = gpunn::data::mnist_row();
  const test::fs::path cache = bare.home / "gpunn/mnist";
  CHECK(gpunn::data::cache_folder(row) == cache);

  CHECK(locate(row, {}).found.empty());
  test::write_mnist(cache, 10, 10);
  CHECK(locate(row, {}).found == cache);
  CHECK(locate(row, path.path()).found == cache);

  const test::Variable variable("GPUNN_DATA_DIR", data_dir.path().string());
  CHECK(locate(row, {}).found == cache);
  test::write_mnist(data_dir / "MNIST/raw", 10, 10);
  CHECK(locate(row, {}).found == data_dir / "MNIST/raw");
  test::write_mnist(data_dir / "mnist", 10, 10);
  CHECK(locate(row, {}).found == data_dir / "mnist");
  test::write_mnist(data_dir.path(), 10, 10);
  CHECK(locate(row, {}).found == data_dir.path());

  test::write_mnist(path / "mnist", 10, 10);
  CHECK(locate(row, path.path()).found == path / "mnist");
  test::write_mnist(path.path(), 10, 10);
  CHECK(locate(row, path.path()).found == path.path());
}

TEST_CASE("Fashion-MNIST's folder may be called with either dash") {
  const test::BareMachine bare;
  const test::TemporaryFolder data_dir;
  const test::Variable variable("GPUNN_DATA_DIR", data_dir.path().string());
  const std::string name = GENERATE(as<std::string>{}, "fashion_mnist", "fashion-mnist");
  test::write_mnist(data_dir / name, 10, 10);
  CHECK(locate(gpunn::data::fashion_mnist_row(), {}).found == data_dir / name);
}

TEST_CASE("the cache folder is the home's .cache unless XDG_CACHE_HOME is an absolute path") {
  const test::BareMachine bare;
  const test::Variable home("HOME", "/home/user");
  const test::Variable relative("XDG_CACHE_HOME", "relative");
  CHECK(gpunn::data::cache_folder(gpunn::data::mnist_row()) == "/home/user/.cache/gpunn/mnist");
  const test::Variable none("HOME", std::nullopt);
  CHECK(gpunn::data::cache_folder(gpunn::data::mnist_row()).empty());
  CHECK_THROWS_WITH(gpunn::download_dataset("mnist"), Contains("neither XDG_CACHE_HOME nor HOME"));
}

TEST_CASE("where a set is nowhere, the error lists every place and what to do") {
  const test::BareMachine bare;
  const test::TemporaryFolder path, data_dir;
  const test::Variable variable("GPUNN_DATA_DIR", data_dir.path().string());
  test::write_file(path / "train-images-idx3-ubyte", "half a set");
  DataConfig config;
  config.dataset = "mnist";
  config.path = path.path();
  CHECK(test::code_of([&] { load_dataset(config); }) == gpunn::ExitCode::missing);
  CHECK_THROWS_WITH(load_dataset(config), Contains("'mnist' is not on this machine") &&
                                              Contains(path.path().string() + ": has no train-labels-idx1-ubyte") &&
                                              Contains((data_dir / "mnist").string() + ": no such folder") &&
                                              Contains((bare.home / "gpunn/mnist").string()) &&
                                              Contains("GPUNN_OFFLINE is set") && Contains("`gpunn data get mnist`") &&
                                              Contains("offline_fallback: digits"));
}

TEST_CASE("the fallback stands in, and says for what") {
  const test::BareMachine bare;
  DataConfig config;
  config.dataset = "mnist";
  config.offline_fallback = "digits";
  config.synthetic_train = 300;
  config.synthetic_test = 50;
  config.train_limit = 200;
  const gpunn::Dataset set = load_dataset(config);
  CHECK(set.name == "digits");
  CHECK(set.fallback_of == "mnist");
  CHECK(set.train.samples.shape == gpunn::Shape{200, 1, 28, 28});
  CHECK(set.test.rows() == 50);

  SECTION("not where the set is there") {
    const test::TemporaryFolder path;
    test::write_mnist(path.path(), 10, 10);
    config.path = path.path();
    CHECK(load_dataset(config).name == "mnist");
  }
  SECTION("only a set that is made can stand in") {
    config.offline_fallback = "fashion_mnist";
    CHECK_THROWS_WITH(load_dataset(config), Contains("offline_fallback") && Contains("itself a set in files"));
    config.offline_fallback = "digit";
    CHECK_THROWS_WITH(load_dataset(config), Contains("unknown data set 'digit'") && Contains("digits"));
    CHECK(test::code_of([&] { load_dataset(config); }) == gpunn::ExitCode::usage);
  }
}

TEST_CASE("every set is listed, with where it is") {
  const test::BareMachine bare;
  test::write_mnist(bare.home / "gpunn/mnist", 10, 10);
  std::vector<std::string> names;
  for (const gpunn::DatasetInfo& info : gpunn::list_datasets()) {
    names.push_back(info.name);
    CHECK(!info.description.empty());
    if (info.name == "digits" || info.name == "points") CHECK(info.synthetic);
    if (info.name == "image_folder" || info.name == "hdf5" || info.name == "csv") CHECK(info.users_own);
    CHECK(info.searched.empty() == (info.synthetic || info.users_own));
    if (info.name == "mnist") CHECK(info.found == bare.home / "gpunn/mnist");
  }
  for (const char* name : {"mnist", "fashion_mnist", "cifar10", "cifar100", "digits", "points", "image_folder"}) {
    CHECK(std::ranges::count(names, name) == 1);
  }
  DataConfig config;
  config.dataset = "minst";
  CHECK_THROWS_WITH(load_dataset(config), Contains("unknown data set 'minst'") && Contains("mnist"));
  CHECK_THROWS_WITH(gpunn::download_dataset("points"), Contains("nothing to download"));
  CHECK_THROWS_WITH(gpunn::download_dataset("image_folder"), Contains("files of your own"));
  const test::Variable offline("GPUNN_OFFLINE", "1");
  CHECK_THROWS_WITH(gpunn::download_dataset("mnist"), Contains("GPUNN_OFFLINE is set"));
}
