#include "data/tables/csv.hpp"

#include <gpunn/data.hpp>

#include <cmath>

#include "catch.hpp"
#include "fields/standardise.hpp"
#include "files.hpp"

using gpunn::CsvSet;
using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::load_dataset;

namespace {

struct Table {
  test::TemporaryFolder folder;
  DataConfig config;
  explicit Table(const std::string& text) {
    config.dataset = "csv";
    config.kind = CsvSet();
    config.path = folder.write("train.csv", text);
  }
  void test(const std::string& text) { config.test_path = folder.write("test.csv", text); }
  CsvSet& settings() { return std::get<CsvSet>(config.kind); }
  Dataset load() const { return load_dataset(config); }
};

std::vector<float> floats(const gpunn::Split& split) {
  std::vector<float> values(static_cast<std::size_t>(split.samples.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(gpunn::fields::element_of(split.samples.dtype, split.values, i));
  }
  return values;
}

void refused(const Table& table, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) CHECK_THROWS_WITH(table.load(), Contains(text));
}

}  // namespace

TEST_CASE("a table has a column of classes and columns of numbers") {
  Table table(
      "\xef\xbb\xbf"
      "length,width,species\r\n5.1, +3.5 ,setosa\r\n\r\n7,-1e-3,\"virginica, \"\"late\"\"\"\r\n 1,2,setosa");
  const Dataset set = table.load();
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::f64, {3, 2}});
  CHECK(floats(set.train) == std::vector<float>{5.1F, 3.5F, 7, -1e-3F, 1, 2});
  CHECK(labels_of(set.train) == std::vector<int32_t>{0, 1, 0});
  CHECK(set.fields.target().names == std::vector<std::string>{"setosa", "virginica, \"late\""});
  CHECK(set.test.rows() == 0);
  CHECK(set.fields.input().mean.size() == 2);
  CHECK(std::abs(set.fields.input().mean[0] - 13.1 / 3) < 1e-6);
}

TEST_CASE("the column of classes is found by name and by number, whatever it is") {
  Table table("class;a;b\n10;1;2\n9;3;4\n10;5;6\n");
  table.settings().delimiter = gpunn::Delimiter::semicolon;
  table.settings().label_column = GENERATE("class", "0");
  const Dataset set = table.load();
  CHECK(set.fields.target().names == std::vector<std::string>{"9", "10"});  // by value, not by letters
  CHECK(labels_of(set.train) == std::vector<int32_t>{1, 0, 1});
  CHECK(floats(set.train) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a table without a header, in two files") {
  Table table("1\t2\tx\n3\t4\ty\n");
  table.settings().delimiter = gpunn::Delimiter::tab;
  table.settings().header = false;
  table.test("5\t6\ty\n");
  const Dataset set = table.load();
  CHECK(set.train.rows() == 2);
  CHECK(labels_of(set.test) == std::vector<int32_t>{1});
  CHECK(floats(set.test) == std::vector<float>{5, 6});
  table.test("5\t6\tz\n");
  refused(table, {"test.csv:1: the class 'z' is not among those of the training samples"});
  table.test("5\t6\t7\ty\n");
  refused(table, {"expected the 3 columns of ", "found 4"});
  table.config.test_fraction = 0.5;
  table.test("5\t6\ty\n");
  refused(table, {"test part of its own (1 samples)"});
}

TEST_CASE("tables that can't be read are refused with the line") {
  const std::string head = "a,b,class\n1,2,x\n";
  refused(Table(head + "1,x\n"), {"train.csv:3: expected 3 fields as in the first line, found 2"});
  refused(Table(head + "1,2,3,x\n"), {"train.csv:3:", "found 4"});
  refused(Table(head + "\n1,two,x\n"), {"train.csv:4: column 'b': expected a number, found 'two'", "'class'"});
  refused(Table(head + "1,,x\n"), {"train.csv:3: column 'b': expected a number, found nothing"});
  refused(Table(head + "nan,1,x\n"), {"column 'a'", "found 'nan'", "finite"});
  refused(Table(head + "1,inf,x\n"), {"found 'inf'"});
  refused(Table(head + "1,1e60,x\n"), {"found '1e60'"});
  refused(Table(head + "1,0x10,x\n"), {"found '0x10'"});
  refused(Table(head + "1,2,\n"), {"train.csv:3: the column of the classes, 'class', is empty"});
  refused(Table(head + "1,2,\"x\n\n3,4,y\n"), {"train.csv:3: a field that begins with a double quote is not closed"});
  refused(Table(head + "1,\"2\"3,x\n"), {"train.csv:3: expected the delimiter behind a closing double quote"});
  refused(Table(head + std::string(500, '9') + "x,2,x\n"), {"...'"});
  refused(Table("1,2,3\n4,5,6\n"), {"train.csv:1: expected the names of the columns", "data.header: false"});
  refused(Table("a;b;class\n1;2;x\n"), {"found one: 'a;b;class'", "data.delimiter"});
  refused(Table("a,b,class\n"), {"no rows behind its header"});
  refused(Table(""), {"the file has no lines"});
  Table table(head);
  table.settings().label_column = "clas";
  refused(table, {"there is no column 'clas'", "did you mean 'class'"});
  table.settings().label_column = "3";
  refused(table, {"there is no column '3'"});
  table.settings().label_column.clear();
  table.settings().header = false;
  refused(table, {"train.csv:1: column number 0: expected a number, found 'a'", "leave data.header out"});
  table.config.path = table.folder / "none.csv";
  CHECK(test::code_of([&] { table.load(); }) == gpunn::ExitCode::missing);
  std::string many = "a,class\n";
  for (int i = 0; i <= 10000; ++i) many += "1," + std::to_string(i) + ".5\n";
  refused(Table(many), {"has 10001 different values", "data.label_column"});
}

TEST_CASE("any bytes are a table or an error") {
  const std::string whole = "a,b,class\n1,2,x\n\"3\",4,\"y\"\"\"\n5,6,x\r\n";
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'"', ',', '\n', '\r', '\0', 'e', '\xff'}) {
      std::string text = whole;
      text[at] = byte;
      const Table table(text);
      int64_t rows = 1;
      try {
        rows = table.load().train.rows();
      } catch (const gpunn::Error&) {
      }
      CHECK(rows >= 1);
      CHECK(rows <= 4);
    }
  }
}
