// What a checkpoint says of its model, and texts that are none.
#include "storage/model_info.hpp"

#include <gpunn/error.hpp>

#include "catch.hpp"
#include "checkpoints.hpp"
#include "storage/format.hpp"

using namespace storage_test;
using gpunn::ModelInfo;
using gpunn::storage::load_checkpoint;
using gpunn::storage::model_info_text;
using gpunn::storage::ModelInfoFailure;
using gpunn::storage::parse_model_info;
using gpunn::storage::save_checkpoint;

namespace {

ModelInfo photos() {
  ModelInfo info;
  info.fields.input().kind = "image";
  info.fields.input().type = {DType::u8, {3, 32, 24}};
  info.fields.input().mean = {0.1, 1.0 / 3, 1e-300};
  info.fields.input().stddev = {0.25, 0.2, 3};
  info.fields.input().fit = {.crop = true, .shorter_side = 40};
  info.fields.target().kind = "class";
  info.fields.target().names = {"cat", "d\"og\n", "\xC3\xA9t\xC3\xA9"};
  info.data.name = "image_folder";
  info.data.source = "/home/me/photos";
  info.data.train = {.rows = 100, .samples = 0xFFFFFFFF, .targets = 1};
  info.data.test = {.rows = 7, .samples = 0x0000ABCD, .targets = 0};
  return info;
}

// `text` with its first `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  return text.replace(place, from.size(), to);
}

}  // namespace

TEST_CASE("a model's description comes back as it was written") {
  const ModelInfo info = photos(), found = parse_model_info(model_info_text(info));
  CHECK(found.task == "classification");
  CHECK(found.fields.input().name == "image");
  CHECK(found.fields.input().type == info.fields.input().type);
  CHECK(found.fields.input().mean == info.fields.input().mean);  // to the bit
  CHECK(found.fields.input().stddev == info.fields.input().stddev);
  CHECK(found.fields.input().fit.crop);
  CHECK(found.fields.input().fit.shorter_side == 40);
  CHECK_FALSE(found.fields.input().light_on_dark);
  CHECK(found.fields.target().names == info.fields.target().names);
  CHECK(found.data.source == info.data.source);
  CHECK(found.data.train == info.data.train);
  CHECK(found.data.validation == gpunn::PartDigest{});
  CHECK(found.data.test == info.data.test);

  ModelInfo table = photos();
  table.fields.input().type = {DType::f32, {3}};
  table.fields.input().names = {"a", "b", ""};
  CHECK(parse_model_info(model_info_text(table)).fields.input().names == table.fields.input().names);

  CHECK(found.fields.target().ids.empty());
  gpunn::ModelInfo detector = info;
  detector.fields.target().ids.assign(detector.fields.target().names.size(), -7);
  CHECK(parse_model_info(model_info_text(detector)).fields.target().ids == detector.fields.target().ids);
  detector.fields.target().ids.push_back(1);
  CHECK_THROWS_WITH(parse_model_info(model_info_text(detector)),
                    Contains("'fields[1].ids': expected a whole number for"));
  CHECK_FALSE(found.photographs);
  ModelInfo enlarger = photos();
  enlarger.photographs = {.scale = 4, .colours = gpunn::ColourPlanes::rgb, .input = gpunn::ModelInput::enlarged};
  const std::string text = model_info_text(enlarger);
  CHECK(parse_model_info(text).photographs == enlarger.photographs);
  CHECK_THROWS_WITH(parse_model_info(with(text, "\"rgb\"", "\"cmyk\"")),
                    Contains("'photographs.colours': expected 'luma' or 'rgb'"));

  ModelInfo latin = photos();
  latin.fields.target().names[0] = "caf\xE9";  // no UTF-8
  CHECK(parse_model_info(model_info_text(latin)).fields.target().names[0] == gpunn::storage::as_utf8("caf\xE9"));
}

TEST_CASE("a description that is damaged or lies is refused, naming what is wrong") {
  const std::string good = model_info_text(photos());
  for (std::size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS(parse_model_info(good.substr(0, length)), ModelInfoFailure);
  }
  struct Case {
    std::string text, expected;
  };
  const Case c = GENERATE_COPY(
      Case{"[]", "expected an object"}, Case{"null", "expected an object"}, Case{"{}", "'task' is missing"},
      Case{with(good, "\"task\":\"classification\"", "\"task\":7"), "'task': expected a text"},
      Case{with(good, "\"dtype\":\"u8\"", "\"dtype\":\"i7\""), "'fields[0].dtype': expected a dtype"},
      Case{with(good, "[3,32,24]", "[]"), "'fields[0].shape': expected 1 to 7 dimensions"},
      Case{with(good, "[3,32,24]", "[3,0,24]"), "'fields[0].shape': expected 1 to 7 dimensions"},
      Case{with(good, "[3,32,24]", "[3,-32,24]"), "'fields[0].shape[1]'"},
      Case{with(good, "[3,32,24]", "[3,1000000000000,1000000000000]"), "'fields[0].shape'"},
      Case{with(good, "[3,32,24]", "[3,1.5,24]"), "'fields[0].shape[1]'"},
      Case{with(good, "[3,32,24]", "[4,32,24]"), "'fields[0].mean': expected 4 numbers"},
      Case{with(good, "0.25", "0"), "'fields[0].stddev': expected 3 numbers"},
      Case{with(good, "0.25", "1e999"), "it is not JSON"}, Case{with(good, "0.25", "null"), "'fields[0].stddev[0]'"},
      Case{with(good, "\"kind\":\"image\"", "\"kind\":7"), "'fields[0].kind': expected a text"},
      Case{with(good, "\"role\":\"input\"", "\"role\":\"output\""), "'fields[0].role': expected 'input' or"},
      Case{with(good, "\"role\":\"input\"", "\"role\":\"id\""), "'fields': expected an input and a target"},
      Case{with(good, "\"crop\":true", "\"crop\":1"), "'fields[0].fit.crop': expected true or false"},
      Case{with(good, "\"cat\"", "[[[[[[1]]]]]]"), "nested"}, Case{with(good, "ffffffff", "-fffffff"), "hexadecimal"},
      Case{with(good, "ffffffff", "ffff"), "'data.parts.train.samples': expected 8 hexadecimal digits"},
      Case{with(good, "\"rows\":100", "\"rows\":-1"), "'data.parts.train.rows'"},
      Case{with(good, "\"validation\"", "\"valid\""), "'data.parts.validation' is missing"});
  CAPTURE(c.text);
  CHECK_THROWS_WITH(parse_model_info(c.text), Contains(c.expected));
}

TEST_CASE("a checkpoint holds the description of its model since format version 2") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  Checkpoint saved = small_checkpoint();
  save_checkpoint(file, saved);
  CHECK_FALSE(load_checkpoint(file).model);  // version 1
  saved.model = photos();
  save_checkpoint(file, saved);
  const Checkpoint loaded = load_checkpoint(file);
  REQUIRE(loaded.model);
  CHECK(model_info_text(*loaded.model) == model_info_text(photos()));
  CHECK(same(loaded, saved));
}
