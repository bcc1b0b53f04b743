// Targets of tasks without classes: numbers and labels in tables, arrays and lists of images.
#include <gpunn/data.hpp>

#include <cmath>
#include <optional>

#include "catch.hpp"
#include "fields/standardise.hpp"
#include "files.hpp"
#include "image_files.hpp"
#include "storage/hdf5.hpp"

using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::load_dataset;

namespace {

using Floats = std::vector<float>;
using Names = std::vector<std::string>;

void learn(DataConfig& config, const std::string& task) {
  config.task = task;
  config.learnt = task == "regression" ? "numbers" : task == "multi_label" ? "label_set" : "class";
}

Floats floats_of(const gpunn::TensorType& type, const std::vector<std::byte>& bytes) {
  Floats values(static_cast<std::size_t>(type.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(gpunn::fields::element_of(type.dtype, bytes, i));
  }
  return values;
}

Floats samples_of(const gpunn::Split& split) { return floats_of(split.samples, split.values); }
Floats targets_of(const gpunn::Split& split) {
  const gpunn::FieldValues& field = split.fields.at(gpunn::kTargetField);
  return floats_of(field.type, field.values);
}

struct TestTable {
  test::TemporaryFolder folder;
  DataConfig config;
  gpunn::CsvSet form;
  TestTable(const std::string& task, const std::string& text) {
    learn(config, task);
    config.dataset = "csv";
    config.path = folder.write("train.csv", text);
  }
  void test(const std::string& text) { config.test_path = folder.write("test.csv", text); }
  Dataset load() const {
    DataConfig whole = config;
    whole.kind = form;
    return load_dataset(whole);
  }
  void refused(const std::vector<std::string>& texts) const {
    for (const std::string& text : texts) CHECK_THROWS_WITH(load(), Contains(text));
  }
};

const std::string kHouses = "rooms,price,area,rent\n3,100,50.5,7\n4,200,60,9\n5,600,70,8\n";

}  // namespace

TEST_CASE("a table's last column, or those named, are the numbers of a regression") {
  TestTable table("regression", kHouses);
  Dataset set = table.load();
  CHECK(set.fields.target().kind == "numbers");
  CHECK(set.fields.target().names == Names{"rent"});
  CHECK(targets_of(set.train) == Floats{7, 9, 8});
  CHECK(labels_of(set.train).empty());
  CHECK(set.train.samples.shape == gpunn::Shape{3, 3});

  table.form.target_columns = {"3", "price"};  // in this order
  set = table.load();
  CHECK(set.fields.target().names == Names{"rent", "price"});
  CHECK(set.fields.target().count() == 2);
  CHECK(targets_of(set.train) == Floats{7, 100, 9, 200, 8, 600});
  CHECK(samples_of(set.train) == Floats{3, 50.5, 4, 60, 5, 70});
}

TEST_CASE("targets are measured on the training rows, and not where that is switched off") {
  TestTable table("regression", "x,y,z\n1,2,5\n2,4,5\n3,6,5\n4,1000,5\n");
  table.form.target_columns = {"y", "z"};
  table.config.train_limit = 3;
  Dataset set = table.load();
  CHECK(set.fields.target().mean == std::vector<double>{4, 5});
  CHECK(std::abs(set.fields.target().stddev.at(0) - std::sqrt(8.0 / 3)) < 1e-12);
  CHECK(set.fields.target().stddev.at(1) == 1);  // a constant
  CHECK(targets_of(set.train) == Floats{2, 5, 4, 5, 6, 5});

  // Of what is left to train on.
  table.config.train_limit = 0;
  table.config.validation_fraction = 0.25;
  set = table.load();
  REQUIRE(set.validation.rows() == 1);
  double mean = 0;
  for (std::size_t row = 0; row < 3; ++row) mean += static_cast<double>(targets_of(set.train)[2 * row]) / 3;
  CHECK(std::abs(set.fields.target().mean.at(0) - mean) <= 0x1p-20 * set.fields.target().stddev.at(0));
  CHECK(targets_of(set.validation).size() == 2);

  table.config.scale_targets = false;
  CHECK(table.load().fields.target().mean.empty());
}

TEST_CASE("targets of a regression that are no numbers are refused with line, column and what to do") {
  const std::string head = "x,y\n1,2\n";
  for (const auto& [field, found] : {std::pair{"cheap", "'cheap'"},
                                     {"nan", "'nan'"},
                                     {"inf", "'inf'"},
                                     {"", "nothing"},
                                     {"1e60", "'1e60'"},
                                     {"-infinity", "'-infinity'"}}) {
    TestTable("regression", head + "3," + field + "\n")
        .refused({"train.csv:3: column 'y': expected a finite number, found " + std::string(found), "task regression",
                  "task: classification"});
  }
  TestTable text("regression", "x,colour,y\n1,red,2\n");
  text.refused({"train.csv:2: column 'colour': expected a number, found 'red'", "'y' (data.target_columns)"});
  text.form.target_columns = {"x", "colour", "y"};
  text.refused({"no column is left for the samples"});
  text.form.target_columns = {"y", "2"};
  text.refused({"has the column 'y' twice"});
  text.form.target_columns = {"Y"};
  text.refused({"there is no column 'Y' (data.target_columns)", "did you mean 'y'"});
  TestTable numbers("regression", "1,x\n");
  numbers.form.header = false;
  numbers.refused({"train.csv:1: column number 1:", "leave data.header out"});
}

TEST_CASE("labels are lists in a column") {
  TestTable table("multi_label", "a,tags,b\n1,cat| dog,2\n3,,4\n5,dog,6\n7,dog|dog|ant,8\n");
  table.form.label_column = "tags";
  Dataset set = table.load();
  CHECK(set.fields.target().kind == "label_set");
  CHECK(set.fields.target().names == Names{"ant", "cat", "dog"});
  CHECK(targets_of(set.train) == Floats{0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1});
  CHECK(samples_of(set.train) == Floats{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(set.fields.target().mean.empty());
  CHECK(gpunn::summarize(set.train, set.fields).fields.at("target").counts == std::vector<int64_t>{1, 1, 3});

  table.test("a,tags,b\n1,ant,2\n1,dog|ca,2\n");
  table.refused({"test.csv:3: the label 'ca' is not among those of the training samples", "did you mean 'cat'"});
  table.test("a,tags,b\n1,cat|dog,2\n");
  CHECK(targets_of(table.load().test) == Floats{0, 1, 1});

  // By value where all are integers, with another separator, in the last column.
  TestTable numbers("multi_label", "a,n\n1,10; 9\n2,100\n");
  numbers.form.label_separator = ";";
  set = numbers.load();
  CHECK(set.fields.target().names == Names{"9", "10", "100"});
  CHECK(targets_of(set.train) == Floats{1, 1, 0, 0, 0, 1});
}

TEST_CASE("labels are columns of 0 and 1") {
  TestTable table("multi_label", "a,cat,b,dog\n1,1,2,0\n3,0,4,1.0\n");
  table.form.target_columns = {"cat", "dog"};
  const Dataset set = table.load();
  CHECK(set.fields.target().names == Names{"cat", "dog"});
  CHECK(targets_of(set.train) == Floats{1, 0, 0, 1});
  CHECK(samples_of(set.train) == Floats{1, 2, 3, 4});
  TestTable wrong("multi_label", "a,cat,dog\n1,1,0\n2,0,2\n");
  wrong.form.target_columns = {"cat", "dog"};
  wrong.refused({"train.csv:3: column 'dog': expected 0 or 1, found '2'", "multi_label"});
}

TEST_CASE("lists of labels that are none are refused") {
  TestTable("multi_label", "a,tags\n1,cat||dog\n")
      .refused({"train.csv:2: column 'tags'", "label of the list is empty"});
  TestTable("multi_label", "a,tags\n1,\n2,\n").refused({"is empty in all rows"});
  // Which are most likely columns of 0 and 1.
  TestTable("multi_label", "a,cat,dog\n1,1,0\n2,0,1\n").refused({"0 and 1 alone", "data.target_columns"});
}

TEST_CASE("a share of rows without classes takes their targets along") {
  std::string text = "x,y\n";
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + "," + std::to_string(10 * i) + "\n";
  TestTable table("regression", text);
  table.config.test_fraction = 0.25;
  table.config.validation_fraction = 0.1;
  const Dataset set = table.load();
  CHECK(set.test.rows() == 10);
  CHECK(set.validation.rows() == 3);
  for (const gpunn::Split* split : {&set.train, &set.validation, &set.test}) {
    const Floats x = samples_of(*split), y = targets_of(*split);
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == 10 * x[i]);
  }
}

namespace {

struct ListedImages {
  test::BareMachine bare;
  test::TemporaryFolder folder;
  DataConfig config;
  gpunn::ImageFolderSet form;
  explicit ListedImages(const std::string& task) {
    learn(config, task);
    config.dataset = "image_folder";
    config.path = folder / "images";
    for (int i = 1; i <= 4; ++i) {
      test::write_file(config.path / (i > 2 ? "sub" : "") / (std::to_string(i) + ".png"),
                       test::make_png(4, 3, std::string(12, static_cast<char>(i))));
    }
  }
  void table(const std::string& text) { form.targets = folder.write("table.csv", text); }
  Dataset load() const {
    DataConfig whole = config;
    whole.kind = form;
    return load_dataset(whole);
  }
};

std::vector<int> first_pixels(const gpunn::Split& split) {
  std::vector<int> pixels;
  for (std::size_t row = 0; row < static_cast<std::size_t>(split.rows()); ++row) {
    pixels.push_back(test::value(split, row * 12));
  }
  return pixels;
}

}  // namespace

TEST_CASE("a table lists images with what is learnt of them") {
  ListedImages images("regression");
  images.table("file,age,height\nsub/3.png,30,1.5\n1.png,10,1.25\n");
  Dataset set = images.load();
  CHECK(set.train.samples.shape == gpunn::Shape{2, 1, 3, 4});
  CHECK(first_pixels(set.train) == std::vector<int>{3, 1});
  CHECK(set.fields.target().names == Names{"age", "height"});
  CHECK(targets_of(set.train) == Floats{30, 1.5, 10, 1.25});
  CHECK(set.test.rows() == 0);

  images.form.target_columns = {"height"};
  images.form.test_targets = images.folder.write("test.csv", "file,age,height\nsub/4.png,1,2\n");
  set = images.load();
  CHECK(targets_of(set.train) == Floats{1.5, 1.25});
  CHECK(first_pixels(set.test) == std::vector<int>{4});
  CHECK(targets_of(set.test) == Floats{2});
  images.config.test_path = images.config.path / "sub";
  images.form.test_targets = images.folder.write("test.csv", "file,age,height\n4.png,1,2\n");
  CHECK(first_pixels(images.load().test) == std::vector<int>{4});

  learn(images.config, "multi_label");
  images.form.target_columns.clear();
  images.form.test_targets.clear();
  images.config.test_path.clear();
  images.table("file,tags\n1.png,old|red\n2.png,red\n");
  CHECK(images.load().fields.target().names == Names{"old", "red"});
  images.table("file,old,red\n1.png,1,1\n2.png,0,1\n");
  CHECK(targets_of(images.load().train) == Floats{1, 1, 0, 1});
  learn(images.config, "classification");
  images.table("file,kind\n1.png,b\n2.png,a\nsub/4.png,b\n");
  CHECK(labels_of(images.load().train) == std::vector<int32_t>{1, 0, 1});
}

TEST_CASE("listed images that are missing or listed twice are told") {
  ListedImages images("regression");
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    images.table(text);
    for (const std::string& part : parts) CHECK_THROWS_WITH(images.load(), Contains(part));
  };
  refused("file,y\n1.png,1\n7.png,2\n2.png,3\nsub/9.png,4\n",
          {"table.csv:3: 2 of the 4 images listed are not in", "'7.png' (line 3), 'sub/9.png' (line 5)"});
  CHECK(test::code_of([&] { images.load(); }) == gpunn::ExitCode::missing);
  refused("file,y\n1.png,1\n2.png,2\n./1.png,3\n", {"table.csv:4: the image './1.png' is in line 2, too"});
  refused("file,y\n,1\n", {"table.csv:2: the first column, 'file', names an image; it is empty"});
  refused("file,y\n1.png,none\n", {"table.csv:2: column 'y': expected a finite number, found 'none'"});
  refused("file,y\n", {"no rows behind its header"});
  images.form.target_columns = {"file"};
  refused("file,y\n1.png,1\n", {"names the files"});
  images.form.targets.clear();
  CHECK_THROWS_WITH(images.load(), Contains("the task regression") && Contains("data.targets"));
}

TEST_CASE("arrays have numbers or labels, a row a sample") {
  using gpunn::storage::Handle;
  test::TemporaryFolder folder;
  DataConfig config;
  config.dataset = "hdf5";
  config.path = folder / "set.h5";
  gpunn::Hdf5Set names;
  names.train_samples = "x";
  names.train_labels = "y";
  config.kind = names;
  const auto load = [&](const std::vector<hsize_t>& dims, const std::vector<double>& targets, const std::string& task) {
    {
      const gpunn::storage::Hdf5Session session;
      const Handle file(H5Fcreate(config.path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose, "create");
      const auto put = [&](const char* name, const std::vector<hsize_t>& shape, const std::vector<double>& values) {
        const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose, "space");
        const Handle array(H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                           H5Dclose, "array");
        H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
      };
      put("x", {2, 1}, {1, 2});
      put("y", dims, targets);
    }
    learn(config, task);
    return load_dataset(config);
  };
  Dataset set = load({2}, {0.5, -3}, "regression");
  CHECK(targets_of(set.train) == Floats{0.5, -3});
  CHECK(set.fields.target().names == Names{"y"});
  CHECK(set.fields.target().mean == std::vector<double>{-1.25});
  set = load({2, 3}, {1, 2, 3, 4, 5, 6}, "regression");
  CHECK(set.fields.target().count() == 3);
  CHECK(set.fields.target().names == Names{"0", "1", "2"});
  set = load({2, 2}, {1, 0, 1, 1}, "multi_label");
  CHECK(targets_of(set.train) == Floats{1, 0, 1, 1});
  CHECK(set.fields.target().kind == "label_set");
  CHECK_THROWS_WITH(load({2, 2}, {1, 0, 0.5, 1}, "multi_label"),
                    Contains("array 'y': row 1, column 0: expected 0 or 1, found 0.5"));
  CHECK_THROWS_WITH(load({2, 2}, {1, 0, 1, NAN}, "regression"),
                    Contains("row 1, column 1: expected a finite number, found NaN"));
  CHECK_THROWS_WITH(load({2}, {1, 0}, "multi_label"), Contains("[rows, labels], found [2]"));
  CHECK_THROWS_WITH(load({2, 1, 1}, {1, 0}, "regression"), Contains("[rows] or [rows, columns], found [2, 1, 1]"));
}

TEST_CASE("two drawn digits are the labels of one image") {
  DataConfig config;
  learn(config, "multi_label");
  config.dataset = "two_digits";
  config.synthetic_train = 300;
  config.synthetic_test = 50;
  const Dataset set = load_dataset(config);
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::u8, {300, 1, 28, 56}});
  const Floats labels = targets_of(set.train);
  int single = 0;
  for (std::size_t row = 0; row < 300; ++row) {
    int count = 0;
    for (std::size_t i = 0; i < 10; ++i) count += labels[row * 10 + i] == 1 ? 1 : 0;
    CHECK((count == 1 || count == 2));
    single += count == 1 ? 1 : 0;
    // A digit on either side.
    for (const std::size_t side : {std::size_t{0}, std::size_t{28}}) {
      int bright = 0;
      for (std::size_t y = 0; y < 28; ++y) {
        for (std::size_t x = side; x < side + 28; ++x) bright += test::value(set.train, (row * 28 + y) * 56 + x) > 128;
      }
      CHECK(bright > 15);
    }
  }
  CHECK(single > 10);  // one in ten
  CHECK(single < 60);
  const Dataset again = load_dataset(config);
  CHECK(again.train.values == set.train.values);
  config.seed = 2;
  CHECK(load_dataset(config).train.values != set.train.values);
  const Dataset known = gpunn::load_sizes(config);
  CHECK(known.fields.target().kind == "label_set");
  CHECK(targets_of(known.train).size() == 3000);
  CHECK(known.test.samples == set.test.samples);
}

TEST_CASE("contact sheets show labels, and numbers from the smallest to the largest") {
  test::TemporaryFolder folder;
  DataConfig config;
  learn(config, "multi_label");
  config.dataset = "two_digits";
  config.synthetic_train = 100;
  config.synthetic_test = 10;
  const Dataset labels = load_dataset(config);
  gpunn::write_contact_sheet(labels, folder / "labels.png", 5);
  const auto height_of = [](const std::string& png) {
    return static_cast<int>(static_cast<unsigned char>(png.at(22)) * 256 + static_cast<unsigned char>(png.at(23)));
  };
  const int of_ten = height_of(test::read_file(folder / "labels.png"));

  ListedImages images("regression");
  images.table("file,y\n1.png,3\n2.png,1\nsub/3.png,2\n");
  gpunn::write_contact_sheet(images.load(), folder / "numbers.png", 5);
  const int of_three = height_of(test::read_file(folder / "numbers.png"));
  CHECK(of_ten > 10 * 28);
  CHECK(of_three > 0);
}
