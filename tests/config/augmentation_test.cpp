// The section augmentation: its keys, and the messages about mistakes in them.
#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

AugmentationConfig read(const std::string& section, const std::vector<Override>& overrides = {}) {
  return parse_experiment(kSound + "augmentation: " + section + "\n", "e.yaml", overrides).augmentation;
}

Texts errors(const std::string& section) { return errors_of(kSound + "augmentation: " + section + "\n"); }

}  // namespace

TEST_CASE("augmentation: a number stands for rows and columns") {
  CHECK(read("{crop: 4}").crop == std::vector<int64_t>{4, 4});
  CHECK(read("{crop: [3, 0], flip: 0.5}").crop == std::vector<int64_t>{3, 0});
  CHECK(read("{translate: 2}").translate == std::vector<int64_t>{2, 2});
  CHECK(read("{flip: 1}").flip == 1);
  CHECK(read("{}").crop.empty());
  CHECK(read("{crop: 4}", {{"augmentation.crop", "[1, 2]"}}).crop == std::vector<int64_t>{1, 2});
  const SourceLocation where = read("{crop: 4}").where;
  CHECK(where.line == 3);
}

TEST_CASE("augmentation: what is wrong is named with its line") {
  CHECK(errors("{flip: 1.5}") ==
        Texts{"e.yaml:3:22: augmentation.flip: expected a number of at least 0 and at most 1, found '1.5'"});
  CHECK(errors("{crop: -1}") == Texts{"e.yaml:3:22: augmentation.crop: expected a list of numbers of at least 0 and at "
                                      "most 16384, found '-1'"});
  CHECK(errors("{crop: 1.5}") == Texts{"e.yaml:3:16: augmentation.crop: expected one integer or two, [rows, columns]"});
  CHECK(errors("{translate: [1, 2, 3]}") ==
        Texts{"e.yaml:3:16: augmentation.translate: expected one integer or two, [rows, columns]"});
  CHECK(errors("{crop: 4, translate: 2}") ==
        Texts{"e.yaml:3:25: augmentation.crop and augmentation.translate are two names of one thing; give one"});
  CHECK(errors("{erase: 0}") ==
        Texts{"e.yaml:3:23: augmentation.erase: expected a list of numbers of at least 1 and at "
              "most 16384, found '0'"});
  CHECK(errors("{scale: [1.1, 0.9]}") ==
        Texts{"e.yaml:3:16: augmentation.scale: expected the least first, [least, most]"});
  CHECK(errors("{scale: 1.1}").size() == 1);
  CHECK(errors("{contrast: 2}").size() == 1);
  CHECK(errors("{flop: 0.5}") == Texts{"e.yaml:3:16: unknown key 'flop' in augmentation; did you mean 'flip'?"});
}

TEST_CASE("augmentation survives a resolved experiment") {
  const Experiment e = parse_experiment(
      kSound + "augmentation: {crop: [4, 2], flip: 0.25, rotate: 5, scale: [0.5, 2], saturation: 0.5, erase: 8}\n",
      "e.yaml");
  const Experiment again = parse_experiment(resolved_yaml(e), "again.yaml");
  CHECK(again.augmentation.crop == e.augmentation.crop);
  CHECK(again.augmentation.translate.empty());
  CHECK(again.augmentation.flip == e.augmentation.flip);
  CHECK(again.augmentation.rotate == 5);
  CHECK(again.augmentation.scale == std::vector<double>{0.5, 2});
  CHECK(again.augmentation.saturation == 0.5);
  CHECK(again.augmentation.erase == std::vector<int64_t>{8, 8});
}
