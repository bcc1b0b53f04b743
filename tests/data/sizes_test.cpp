// load_sizes(): the sizes of a data set that is not on this machine.
#include <gpunn/data.hpp>

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "data/files.hpp"
#include "data/registry.hpp"

using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::DType;
using gpunn::load_sizes;
using gpunn::TensorType;

namespace {

DataConfig config_for(const std::string& name) {
  DataConfig config;
  config.dataset = name;
  return config;
}

}  // namespace

TEST_CASE("the sizes of published sets are known on a bare machine") {
  const test::BareMachine bare;
  const Dataset mnist = load_sizes(config_for("mnist"));
  CHECK(mnist.from_registry);
  CHECK(mnist.train.samples == TensorType{DType::u8, {60000, 1, 28, 28}});
  CHECK(mnist.test.samples == TensorType{DType::u8, {10000, 1, 28, 28}});
  CHECK(mnist.fields.target().count() == 10);
  CHECK(mnist.fields.input().mean.size() == 1);
  DataConfig cifar = config_for("cifar100");
  CHECK(load_sizes(cifar).train.samples == TensorType{DType::u8, {50000, 3, 32, 32}});
  CHECK(load_sizes(cifar).fields.target().count() == 100);
  cifar.kind = gpunn::Cifar100Set{.label_mode = gpunn::LabelMode::coarse};
  CHECK(load_sizes(cifar).fields.target().count() == 20);
  for (const gpunn::data::DatasetRow& row : gpunn::data::registry()) {
    CAPTURE(row.name);
    const bool unknown = row.origin == gpunn::data::Origin::user || row.origin == gpunn::data::Origin::memory;
    CHECK((row.sizes == nullptr) == (unknown || !row.learnt.empty()));
  }
}

TEST_CASE("limits and fractions cut known sizes as they cut the set") {
  const test::BareMachine bare;
  DataConfig config = config_for("fashion_mnist");
  config.validation_fraction = 0.1;
  config.train_limit = 500;
  config.offline_fallback = "digits";
  const Dataset set = load_sizes(config);
  CHECK(set.name == "fashion_mnist");
  CHECK(set.train.rows() == 500);
  CHECK(set.validation.rows() == 6000);
  CHECK(set.test.rows() == 10000);
}

TEST_CASE("sizes of sets that are made are those of the sets") {
  for (const std::string name : {"digits", "points"}) {
    DataConfig config = config_for(name);
    config.synthetic_train = 130;
    config.validation_fraction = 0.25;
    const Dataset known = load_sizes(config), made = gpunn::load_dataset(config);
    CHECK(known.train.samples == made.train.samples);
    CHECK(known.test.samples == made.test.samples);
    CHECK(known.validation.samples == made.validation.samples);
    CHECK(known.fields.target().count() == made.fields.target().count());
    CHECK(known.fields.input().mean.size() == made.fields.input().mean.size());
    CHECK_FALSE(known.from_registry);
  }
}

TEST_CASE("a published set that is here has the sizes of its files") {
  const test::BareMachine bare;
  const test::TemporaryFolder folder;
  test::write_mnist(folder.path(), 20, 10, true, '-', 12, 14);
  DataConfig config = config_for("mnist");
  config.path = folder.path();
  const Dataset set = load_sizes(config);
  CHECK_FALSE(set.from_registry);
  CHECK(set.train.samples.shape == gpunn::Shape{20, 1, 12, 14});
}
