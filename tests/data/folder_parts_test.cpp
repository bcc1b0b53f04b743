// Which folders of a data set are its parts, and which are its classes.
#include "data/folders/folder_parts.hpp"

#include <gpunn/data.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "files.hpp"

using gpunn::BoxSet;
using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::ImageFolderSet;
using gpunn::load_dataset;
using gpunn::PhotographSet;
using gpunn::data::Part;
using gpunn::data::part_named;
using test::write_file;

namespace {

struct Tree {
  test::BareMachine bare;
  test::TemporaryFolder root;

  void put(const std::vector<std::string>& folders, int images = 2) const {
    for (const std::string& folder : folders) {
      for (int i = 0; i < images; ++i) {
        write_file(root / folder / (std::to_string(i) + ".pgm"),
                   "P5 8 8 255\n" + std::string(64, static_cast<char>(i)));
      }
    }
  }
  DataConfig config() const {
    DataConfig config;
    config.dataset = "image_folder";
    config.kind = ImageFolderSet();
    config.path = root.path();
    return config;
  }
  Dataset load() const { return load_dataset(config()); }
};

bool said(const Dataset& set, const std::string& text) {
  return std::ranges::any_of(set.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the names of parts are recognised in their usual spellings, and no others") {
  const std::map<std::string, Part> whole = {{"train", Part::train},         {"Train", Part::train},
                                             {"TRAINING", Part::train},      {"trn", Part::train},
                                             {"train2017", Part::train},     {"train_set", Part::train},
                                             {"train-images", Part::train},  {"images.train", Part::train},
                                             {"TrainSet", Part::train},      {"trainval", Part::train},
                                             {"Training Data", Part::train}, {"val", Part::validation},
                                             {"Valid", Part::validation},    {"validation_set", Part::validation},
                                             {"dev", Part::validation},      {"val2014", Part::validation},
                                             {"test", Part::test},           {"Testing", Part::test},
                                             {"test1", Part::test},          {"testset", Part::test},
                                             {"eval", Part::test},           {"hold-out", Part::test}};
  for (const auto& [name, part] : whole) {
    CAPTURE(name);
    const auto found = part_named(name);
    REQUIRE(found);
    CHECK(found->part == part);
    CHECK(found->whole);
  }
  for (const auto& [name, part] : std::map<std::string, Part>{{"seg_train", Part::train},
                                                              {"train_station", Part::train},
                                                              {"DIV2K_valid_HR", Part::validation},
                                                              {"test_tube", Part::test}}) {
    CAPTURE(name);
    const auto found = part_named(name);
    REQUIRE(found);
    CHECK(found->part == part);
    CHECK_FALSE(found->whole);
  }
  for (const char* name :
       {"trainer", "contest", "latest", "Valencia", "devil", "images", "data", "2017", "cat", "traintest", "invalid"}) {
    CAPTURE(name);
    CHECK_FALSE(part_named(name));
  }
}

TEST_CASE("class folders of parts are read whatever the parts are called") {
  const Tree tree;
  const auto check = [&](const std::string& train, const std::string& validation, const std::string& test) {
    CAPTURE(train, validation, test);
    for (const std::string& part : {train, validation, test}) tree.put({part + "/cat", part + "/dog"});
    const Dataset set = tree.load();
    CHECK(set.fields.target().names == Names{"cat", "dog"});
    CHECK((set.train.rows() == 4 && set.validation.rows() == 4 && set.test.rows() == 4));
    CHECK(said(set, "recognised by the names of their folders: train: " + (tree.root / train).string()));
  };
  SECTION("capitals") { check("Train", "Val", "TEST"); }
  SECTION("long words") { check("training", "validation", "testing"); }
  SECTION("words around") { check("training_set", "dev-set", "test_images"); }
  SECTION("years") { check("train2017", "val2017", "test2017"); }
  SECTION("a name in front, and each part wrapped again") {
    tree.put({"docs"}, 0);
    check("seg_train/seg_train", "seg_val/seg_val", "seg_test/seg_test");
  }
  SECTION("a folder around all, next to what systems leave") {
    tree.put({"__MACOSX/data/images/train/cat", ".hidden/cat", "@eaDir/cat"});
    std::filesystem::create_directories(tree.root / "empty");
    write_file(tree.root / ".DS_Store", "x");
    check("data/images/train", "data/images/val", "data/images/test");
  }
}

TEST_CASE("a folder that is alone around the classes is entered, and the data set says so") {
  const Tree tree;
  tree.put({"PetImages/Cat", "PetImages/Dog", "__MACOSX/PetImages"});
  const Dataset set = tree.load();
  CHECK(set.fields.target().names == Names{"Cat", "Dog"});
  CHECK(said(set, "only holds the folder PetImages"));
}

TEST_CASE("folders that can be read in two ways are asked about, with the keys that decide") {
  const Tree tree;
  DataConfig config = tree.config();
  const auto fails = [&](const Names& texts) {
    CHECK(test::code_of([&] { load_dataset(config); }) == gpunn::ExitCode::usage);
    for (const std::string& text : texts) CHECK_THROWS_WITH(load_dataset(config), Contains(text));
  };
  SECTION("a class called test") {
    tree.put({"cat", "dog", "test"});
    fails({"cat (2 images), dog (2 images), test (2 images)", "If each folder is a class, set data.train_folder: .\n",
           "set data.train_folder: ., data.test_folder: test"});
    config.train_folder = ".";
    CHECK(load_dataset(config).fields.target().names == Names{"cat", "dog", "test"});
    tree.put({"test/cat"}, 3);
    std::filesystem::remove(tree.root / "test/0.pgm");
    std::filesystem::remove(tree.root / "test/1.pgm");
    config.test_folder = "test";
    const Dataset set = load_dataset(config);
    CHECK(set.fields.target().names == Names{"cat", "dog"});
    CHECK((set.train.rows() == 4 && set.test.rows() == 3));
  }
  SECTION("the training part next to classes") {
    tree.put({"train/cat", "train/dog", "cat"});
    fails({"If they are parts of the data set, set data.train_folder: train"});
    config.train_folder = "train";
    CHECK(load_dataset(config).train.rows() == 4);
  }
  SECTION("parts with a name in front, next to images without a class") {
    tree.put({"seg_train/seg_train/cat", "seg_train/seg_train/dog", "seg_test/seg_test/cat", "seg_pred"});
    fails({"set data.train_folder: seg_train, data.test_folder: seg_test"});
    config.train_folder = "seg_train";
    config.test_folder = "seg_test";
    const Dataset set = load_dataset(config);
    CHECK((set.fields.target().count() == 2 && set.test.rows() == 2));
  }
  SECTION("one part twice") {
    tree.put({"train/cat", "train/dog", "Train/cat", "val/cat", "valid/cat"});
    fails({"data.train_folder: Train (or train), data.validation_folder: val (or valid)"});
    config.train_folder = "train";
    config.validation_folder = "valid";
    CHECK(load_dataset(config).validation.rows() == 2);
  }
  SECTION("no training part") {
    tree.put({"test/cat", "test/dog"});
    fails({"the training part is missing", "data.train_folder: test"});
  }
  SECTION("parts in another language") {
    tree.put({"entrenamiento/cat", "entrenamiento/dog", "prueba/cat", "prueba/dog"});
    fails({"entrenamiento (4 images), prueba (4 images)", "name them by data.train_folder, data.validation_folder"});
    config.train_folder = "entrenamiento";
    config.test_folder = "prueba";
    CHECK(load_dataset(config).fields.target().names == Names{"cat", "dog"});
    config.train_folder = ".";
    config.test_folder = "";
    CHECK(load_dataset(config).fields.target().names == Names{"entrenamiento", "prueba"});
  }
  SECTION("parts within each class") {
    tree.put({"cat/train", "cat/test", "dog/train", "dog/test"});
    fails({"If their own folders are the parts, move each class into its part"});
  }
  SECTION("names of a class and a part") {
    tree.put({"cats_train", "cats_test", "dogs_train", "dogs_test"});
    fails({"If their names hold a part and a class, move each into a folder of its part"});
  }
  SECTION("a test part without classes") {
    tree.put({"train/cat", "train/dog", "test"});
    CHECK_THROWS_WITH(load_dataset(config), Contains("test: expected a folder for each class"));
    CHECK_THROWS_WITH(load_dataset(config), Contains("To leave this part out, set data.train_folder: train"));
    config.train_folder = "train";
    CHECK(load_dataset(config).fields.target().names == Names{"cat", "dog"});
  }
  SECTION("two test parts") {
    tree.put({"data/train/cat", "data/test/cat", "other/cat"});
    config.path = tree.root / "data";
    config.test_path = tree.root / "other";
    fails({"the test part is given twice"});
    config.test_path = tree.root / "data/test/";
    CHECK(load_dataset(config).test.rows() == 2);
  }
  SECTION("a folder that is not there") {
    tree.put({"a", "b"});
    config.train_folder = "c";
    CHECK_THROWS_WITH(load_dataset(config), Contains("no such folder; data.train_folder"));
  }
}

TEST_CASE("classes may hold folders of their own") {
  const Tree tree;
  SECTION("one of the same name in each") { tree.put({"cat/images", "dog/images"}); }
  SECTION("several of other names") { tree.put({"cat/indoor", "cat/zoo", "dog/indoor", "dog/street"}); }
  CHECK(tree.load().fields.target().names == Names{"cat", "dog"});
}

TEST_CASE("classes may have names like those of parts, and the test part may lie among them") {
  const Tree tree;
  tree.put({"train_station", "bullet_train", "test_tube"});
  CHECK(tree.load().fields.target().count() == 3);
  tree.put({"apart/train_station", "apart/test_tube"});
  DataConfig config = tree.config();
  config.test_path = tree.root / "apart";
  const Dataset set = load_dataset(config);
  CHECK(set.fields.target().names == Names{"bullet_train", "test_tube", "train_station"});
  CHECK((set.test.rows() == 4 && set.train.rows() == 6));
}

TEST_CASE("photographs of all parts are not trained on") {
  const Tree tree;
  tree.put({"Train/a", "Train/b", "Valid", "Test"});
  DataConfig config = tree.config();
  config.dataset = "photograph_folder";
  config.task = "super_resolution";
  config.learnt = "image";
  PhotographSet settings;
  settings.scale = 2;
  settings.patch_size = 8;
  settings.patches = 4;
  config.kind = settings;
  const Dataset set = load_dataset(config);
  CHECK(set.test.rows() == 2);
  CHECK(set.validation.rows() == 2);
  CHECK(said(set, "train: " + (tree.root / "Train").string()));
  config.train_folder = "Train";
  CHECK_THROWS_WITH(load_dataset(config), Contains("no images to evaluate on"));
  config.train_folder.clear();
  tree.put({"more"});
  CHECK_THROWS_WITH(load_dataset(config), Contains("If all of them are to train on, set data.train_folder: ."));
}

TEST_CASE("YOLO's images are divided by folders, with the parts inside images or around it") {
  const Tree tree;
  const auto label = [&](const std::string& file) { write_file(tree.root / file, "0 0.5 0.5 0.5 0.5\n"); };
  DataConfig config = tree.config();
  config.dataset = "detection_folder";
  config.task = "detection";
  config.learnt = "boxes";
  BoxSet settings;
  settings.format = gpunn::BoxFormat::yolo;
  settings.image_size = {8, 8};
  settings.channels = 1;
  config.kind = settings;
  const auto labels = [&](const std::string& images, const std::string& folder) {
    tree.put({images});
    for (const char* file : {"/0.txt", "/1.txt"}) label(folder + file);
  };
  SECTION("inside") {
    for (const std::string part : {"train", "val", "test"}) labels("images/" + part, "labels/" + part);
  }
  SECTION("around") {
    for (const std::string part : {"train", "valid", "test"}) labels(part + "/images", part + "/labels");
  }
  const Dataset set = load_dataset(config);
  CHECK(set.train.rows() == 2);
  CHECK(set.validation.rows() == 2);
  CHECK(set.test.rows() == 2);
}
