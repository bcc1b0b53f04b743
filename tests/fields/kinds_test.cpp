// The kinds of fields: what each takes, refuses and tells of its values.
#include <gpunn/error.hpp>

#include <cmath>
#include <numeric>
#include <set>

#include "catch.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

using namespace gpunn;
using fields::Kind;

namespace {

Field map_of(std::vector<std::string> names) {
  Field field = fields::target_field("label_map", std::move(names));
  field.type = {DType::u8, {2, 3}};
  field.ignored = 255;
  return field;
}

FieldValues maps(const std::vector<uint8_t>& pixels) {
  return fields::values_of(pixels, DType::u8, {static_cast<int64_t>(pixels.size()) / 6, 2, 3});
}

// An array in memory.
class Numbers : public fields::ArraySource {
 public:
  Numbers(Shape shape, std::vector<double> numbers, bool integers)
      : shape_(std::move(shape)), numbers_(std::move(numbers)), integers_(integers) {}
  std::string name() const override { return "a.h5: array 'y'"; }
  const Shape& shape() const override { return shape_; }
  bool integers() const override { return integers_; }
  std::vector<int64_t> read_integers() const override { return {numbers_.begin(), numbers_.end()}; }
  std::vector<double> read_numbers() const override { return numbers_; }

 private:
  Shape shape_;
  std::vector<double> numbers_;
  bool integers_;
};

// A kind of a program that uses gpunn.
class Angle : public Kind {
 public:
  std::string_view name() const override { return "angle"; }
  std::string_view help() const override { return "an angle of each sample"; }
  std::string_view data() const override { return "angles"; }
  std::string of_sample(const Field&) const override { return "an angle a sample"; }
  std::string amount(const Field&) const override { return "an angle"; }
  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    fields::require_type(values, {DType::f32, {rows, 1}}, part + " angles");
    fields::require_finite(DType::f32, values.bytes(), field.count(), part + " angles");
  }
};

}  // namespace

TEST_CASE("each kind says what it is, and its blank values are values of it") {
  std::set<std::string_view> names;
  for (const Kind* kind : fields::kinds()) {
    CAPTURE(kind->name());
    CHECK(names.insert(kind->name()).second);
    CHECK_FALSE(kind->help().empty());
    CHECK_FALSE(kind->data().empty());
    Field field = kind->target({"a", "b", "c"});
    CHECK(field.kind == kind->name());
    CHECK(field.role == Role::target);
    CHECK(field.count() == 3);
    if (kind->name() == "label_map") field.type = {DType::u8, {4, 5}};
    if (kind->name() == "tokens") field.type = {DType::i32, {7}};
    const FieldValues blank = kind->blank(field, 5);
    CHECK(blank.type.shape.front() == 5);
    CHECK(blank.values.size() == blank.type.bytes());
    CHECK_NOTHROW(kind->require(field, blank, 5, "training"));
    CHECK_THROWS_AS(kind->require(field, blank, 6, "training"), Error);
    CHECK_FALSE(kind->of_sample(field).empty());
    CHECK_FALSE(kind->amount(field).empty());
  }
  CHECK(names.size() == 7);
  CHECK_THROWS_WITH(fields::find("clas"), Contains("did you mean 'class'"));
}

TEST_CASE("a program adds a kind of its own") {
  static const Angle angle;
  fields::add(angle);
  CHECK(&fields::find("angle") == &angle);
  CHECK_THROWS_WITH(fields::add(angle), Contains("already"));
  const Field field = fields::target_field("angle", {"angle"});
  CHECK_NOTHROW(angle.require(field, angle.blank(field, 3), 3, "test"));
  CHECK_THROWS_WITH(angle.require(field, fields::values_of(std::vector<float>{NAN}, DType::f32, {1, 1}), 1, "test"),
                    Contains("the test angles hold NaN in row 0"));
  CHECK_THROWS_WITH(angle.read(Numbers({1}, {1}, false)), Contains("not read as angles"));
}

TEST_CASE("classes are counted, grouped, and read from integers") {
  const Field field = fields::target_field("class", {"cat", "dog", "emu"});
  const Kind& kind = fields::kind_of(field);
  const FieldValues values = fields::class_values({2, 0, 0, 2, 2});
  CHECK(kind.summarize(field, values, 5).counts == std::vector<int64_t>{2, 0, 3});
  const auto groups = kind.groups(field, values, 2);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].rows == std::vector<int64_t>{1, 2});
  CHECK(groups[1].rows.empty());
  CHECK(groups[2].rows == std::vector<int64_t>{0, 3});
  CHECK_FALSE(kind.common_value(field, values));
  CHECK(kind.common_value(field, fields::class_values({1, 1})) == "the class 'dog'");
  CHECK(fields::numbers_in<int32_t>(kind.read(Numbers({3}, {0, 2, 1}, true))) == std::vector<int32_t>{0, 2, 1});
  CHECK_THROWS_WITH(kind.read(Numbers({3}, {0, 2, 1}, false)), Contains("expected classes as integers"));
  CHECK_THROWS_WITH(kind.read(Numbers({2}, {0, -1}, true)), Contains("the class of row 1 is -1"));
  CHECK_THROWS_WITH(kind.require(field, fields::class_values({0, 3}), 2, "test"),
                    Contains("the test label of row 1 (counted from 0) is 3; with 3 classes labels are 0 to 2"));
}

TEST_CASE("a label map may hold its classes and the ignored value") {
  const Field field = map_of({"road", "sky"});
  const Kind& kind = fields::kind_of(field);
  const FieldValues values = maps({0, 0, 1, 255, 0, 0, 1, 1, 1, 1, 1, 255});
  CHECK_NOTHROW(kind.require(field, values, 2, "training"));
  CHECK(kind.summarize(field, values, 2).counts == std::vector<int64_t>{4, 6});
  const auto groups = kind.groups(field, values, 9);
  CHECK(groups.at(0).rows == std::vector<int64_t>{0});
  CHECK(groups.at(1).rows == std::vector<int64_t>{1, 0});  // the largest share first
  CHECK_THROWS_WITH(kind.require(field, maps({0, 0, 0, 0, 0, 2}), 1, "test"), Contains("the test label map of row 0") &&
                                                                                  Contains("holds 2") &&
                                                                                  Contains("255, which is ignored"));
  CHECK(kind.lies_in_picture());
}

TEST_CASE("numbers of a row are finite, and grouped by size") {
  const Field field = fields::target_field("numbers", {"price"});
  const Kind& kind = fields::kind_of(field);
  std::vector<double> numbers(40);
  std::iota(numbers.rbegin(), numbers.rend(), 0);
  const FieldValues values = fields::number_values(numbers, 1);
  const auto groups = kind.groups(field, values, 3);
  REQUIRE(groups.size() == 10);
  CHECK(groups.front().name == "0 to 3");
  CHECK(groups.front().rows == std::vector<int64_t>{39, 38, 37});
  CHECK(kind.summarize(field, values, 40).columns.at(0).max == 39);
  CHECK_THROWS_WITH(kind.require(field, fields::number_values({1.0, INFINITY}, 1), 2, "test"),
                    Contains("the test targets hold an infinity in row 1"));
  CHECK_THROWS_WITH(kind.read(Numbers({2}, {1, 1e300}, false)), Contains("row 1, column 0") && Contains("beyond f32"));
}

TEST_CASE("label sets are 0 and 1 in each column") {
  const Field field = fields::target_field("label_set", {"sun", "rain"});
  const Kind& kind = fields::kind_of(field);
  const FieldValues values = fields::label_values({1, 0, 1, 1, 0, 0}, 2);
  CHECK(kind.summarize(field, values, 3).counts == std::vector<int64_t>{2, 1});
  CHECK(kind.common_value(field, fields::label_values({1, 0, 1, 0}, 2)) == "the same labels");
  CHECK_THROWS_WITH(kind.require(field, fields::label_values({1, 0.5F}, 2), 1, "test"),
                    Contains("each must be 0 or 1"));
  CHECK_THROWS_WITH(kind.read(Numbers({1, 2}, {1, 2}, true)), Contains("row 0, column 1: expected 0 or 1"));
}

TEST_CASE("tokens are indices into their names") {
  Field field = fields::target_field("tokens", {"a", "b"});
  field.type = {DType::i32, {3}};
  const Kind& kind = fields::kind_of(field);
  CHECK_NOTHROW(kind.require(field, fields::values_of<int32_t>({0, 1, 1}, DType::i32, {1, 3}), 1, "test"));
  CHECK_THROWS_WITH(kind.require(field, fields::values_of<int32_t>({0, 1, 2}, DType::i32, {1, 3}), 1, "test"),
                    Contains("row 0") && Contains("hold 2; expected 0 to 1"));
}
