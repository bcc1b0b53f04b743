// Boxes from files as labelling tools write them, and mistakes in them.
#include <gpunn/error.hpp>

#include <array>
#include <limits>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "data/detection/boxed_image.hpp"
#include "data/images/exif.hpp"
#include "files.hpp"

using namespace gpunn;
using namespace gpunn::data;
using gpunn::testing::TemporaryFolder;
using test::write_file;

namespace {

// A grey picture that is darker to the left.
std::string pgm(int64_t height, int64_t width) {
  std::string bytes = "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  for (int64_t i = 0; i < height * width; ++i) bytes += static_cast<char>(i % width);
  return bytes;
}

std::string voc_object(const std::string& name, const std::string& corners, bool difficult = false) {
  return "<object><name>" + name + "</name><difficult>" + (difficult ? "1" : "0") + "</difficult><bndbox>" + corners +
         "</bndbox></object>";
}

std::string corners(double left, double top, double right, double bottom) {
  return "<xmin>" + std::to_string(left) + "</xmin><ymin>" + std::to_string(top) + "</ymin><xmax>" +
         std::to_string(right) + "</xmax><ymax>" + std::to_string(bottom) + "</ymax>";
}

std::string voc(const std::string& objects, int64_t width = 40, int64_t height = 30) {
  return "<?xml version=\"1.0\"?><!-- by hand --><annotation><filename>a.pgm</filename><size><width>" +
         std::to_string(width) + "</width><height>" + std::to_string(height) + "</height></size>" + objects +
         "</annotation>";
}

AnnotatedImage with_boxes(std::vector<fields::Box> boxes) {
  AnnotatedImage image{.file = "a.pgm", .place = "a.xml"};
  for (const fields::Box& box : boxes) image.boxes.push_back({.box = box, .category = "cat"});
  return image;
}

bool is(const fields::Box& box, double left, double top, double right, double bottom) {
  return box.left == Approx(left) && box.top == Approx(top) && box.right == Approx(right) &&
         box.bottom == Approx(bottom);
}

}  // namespace

TEST_CASE("VOC: boxes, difficult ones, images of a list; what is missing on either side is counted") {
  const TemporaryFolder folder;
  const auto root = folder.path();
  write_file(root / "Annotations/a.xml",
             voc(voc_object("dog &amp; cat", corners(1, 2, 11, 12.5)) + voc_object("dog", corners(0, 0, 5, 5), true)));
  write_file(root / "Annotations/gone.xml", "<annotation></annotation>");
  write_file(root / "Annotations/same.xml", voc(""));  // says that its image is a.pgm
  write_file(root / "JPEGImages/a.pgm", pgm(30, 40));
  write_file(root / "list.txt", "a 1\nno_xml -1\n\ngone\nsame\n");
  const Annotations read = read_voc(root / "Annotations", root / "JPEGImages", root / "list.txt");
  REQUIRE(read.images.size() == 1);
  REQUIRE(read.images[0].boxes.size() == 2);
  CHECK(read.images[0].boxes[0].category == "dog & cat");
  CHECK(is(read.images[0].boxes[0].box, 1, 2, 11, 12.5));
  CHECK(read.images[0].boxes[1].difficult);
  CHECK(read.images[0].width == 40);
  REQUIRE(read.notes.size() == 3);
  CHECK_THAT(read.notes[2], Contains("same.xml") && Contains("left out"));
  CHECK_THAT(read.notes[0], Contains("1 image has no annotation") && Contains("no_xml"));
  CHECK_THAT(read.notes[1], Contains("1 annotation has no image") && Contains("gone.xml"));
  CHECK(classes_of(read) == std::vector<std::string>{"dog", "dog & cat"});

  write_file(root / "JPEGImages/alone.pgm", pgm(3, 4));
  CHECK_THAT(read_voc(root / "Annotations", root / "JPEGImages", {}).notes.back(), Contains("alone.pgm"));
  write_file(root / "list.txt", "a\na\n");
  CHECK_THROWS_WITH(read_voc(root / "Annotations", root / "JPEGImages", root / "list.txt"),
                    Contains("list.txt:2") && Contains("twice"));
}

TEST_CASE("VOC: what is no annotation is refused with its place") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.xml";
  const auto refused = [&](const std::string& text, const std::string& why) {
    write_file(file, text);
    CHECK_THROWS_WITH(read_voc_file(file), Contains("a.xml") && Contains(why));
  };
  refused("", "a.xml");
  refused("<annotation><object>", "no sound XML");
  refused("<html></html>", "no element <annotation>");
  refused(voc(voc_object("", corners(0, 0, 1, 1))), "object 1: the element <name>");
  refused(voc(voc_object("a", corners(0, 0, 1, 1)) + voc_object("a", "<xmin>1</xmin>")),
          "object 2: the element <bndbox.ymin>");
  refused(voc(voc_object("a", "<xmin>left</xmin>")), "expected a number, found 'left'");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  refused(deep, "deep");
}

TEST_CASE("COCO: ids of any kind are kept, areas and flags are as the file has them") {
  const TemporaryFolder folder;
  const auto root = folder.path();
  for (const std::string name : {"a.pgm", "b.pgm", "c.pgm"}) write_file(root / "images" / name, pgm(30, 40));
  const auto file = root / "instances.json";
  const auto write = [&](const std::string& ids, const std::string& annotations) {
    std::array<std::string, 3> id;
    std::istringstream(ids) >> id[0] >> id[1] >> id[2];
    write_file(file, R"({"images":[{"file_name":"a.pgm","id":)" + id[0] + R"(},{"file_name":"b.pgm","id":)" + id[1] +
                         R"(},{"file_name":"c.pgm","id":)" + id[2] +
                         R"(}],"categories":[{"id":90,"name":"ant"},{"id":0,"name":"bee"},{"id":7.0,"name":"ant"}],)" +
                         R"("annotations":[)" + annotations + "]}");
    return read_coco(file, root / "images");
  };
  const Annotations read = write(R"("x10" "x9" "x1")", R"({"id":0,"image_id":"x9","category_id":90,"bbox":[1,2,3,4],
      "iscrowd":true,"area":0},{"id":1,"image_id":"x9","category_id":7.0,"bbox":[1,2,3,4],"area":null,"ignore":1})");
  CHECK(read.class_ids == std::vector<int64_t>{0, 7, 90});
  CHECK(read.classes == std::vector<std::string>{"bee", "ant (id 7)", "ant (id 90)"});
  const auto orders = [](const Annotations& of) {
    std::vector<int64_t> found;
    for (const AnnotatedImage& image : of.images) found.push_back(image.order);
    return found;
  };
  CHECK(orders(read) == std::vector<int64_t>{1, 2, 0});  // by letters
  CHECK(read.images[1].id == "\"x9\"");
  REQUIRE(read.images[1].boxes.size() == 2);
  const NamedBox &crowd = read.images[1].boxes[0], &other = read.images[1].boxes[1];
  CHECK((crowd.crowd && crowd.has_id_zero && crowd.area == 0 && crowd.category == "ant (id 90)"));
  CHECK((!other.crowd && !other.has_id_zero && !other.area && !other.difficult));
  REQUIRE(read.evaluation_notes.size() == 2);
  CHECK_THAT(read.evaluation_notes[0], Contains("1 annotations have no area"));
  CHECK_THAT(read.evaluation_notes[1], Contains("the id 0"));

  const std::string box = R"({"id":3,"image_id":"x9","category_id":0,"bbox":[1,2,3,4],"area":12})";
  const Annotations twice = write(R"("x10" "x9" "x1")", box + "," + box);
  CHECK(twice.images[1].boxes.size() == 2);
  REQUIRE(twice.evaluation_notes.size() == 1);
  CHECK_THAT(twice.evaluation_notes[0], Contains("1 annotations have the id of another"));

  const Annotations large = write("9007199254740993 12.0 9007199254740992", R"({"image_id":12,"category_id":0,
      "bbox":[0,0,1,1]})");
  CHECK(orders(large) == std::vector<int64_t>{2, 0, 1});
  CHECK(large.images[0].id == "9007199254740993");
  CHECK(large.images[1].boxes.size() == 1);  // 12 is 12.0
  CHECK_THROWS_WITH(write("1 1.0 2", ""), Contains("the id 1.0 is there twice"));
  CHECK_THROWS_WITH(write("1 null 2", ""), Contains("id: expected a number or a string"));
  write("7 8 \"9\"", "");
  const CocoFileIds ids = read_coco_ids(file);
  CHECK(ids.categories == std::map<std::string, int64_t>{{"bee", 0}, {"ant (id 7)", 7}, {"ant (id 90)", 90}});
  CHECK(ids.images == std::map<std::string, std::string>{{"a.pgm", "7"}, {"b.pgm", "8"}, {"c.pgm", "\"9\""}});
}

TEST_CASE("an evaluation counts boxes as the file has them, in order and where they are") {
  AnnotatedImage image{.file = "a", .place = "a", .boxes = {}};
  for (const fields::Box& box :
       {fields::Box{-5, 2, 50, 9}, {3, 3, 3, 8}, {90, 90, 95, 95}, {8, 1, 2, 4}, {8, 1, 2, 4}}) {
    image.boxes.push_back({.box = box, .category = "cat"});
  }
  image.boxes.push_back({.box = {0, 0, std::numeric_limits<double>::quiet_NaN(), 1}, .category = "cat"});
  const std::vector<fields::TrueBox> boxes = counted_boxes(image, 20, 30, {"dog", "cat"});
  REQUIRE(boxes.size() == 5);
  CHECK(is(boxes[0].box, -5, 2, 50, 9));
  CHECK(is(boxes[1].box, 3, 3, 3, 8));
  CHECK(is(boxes[2].box, 90, 90, 95, 95));
  CHECK(is(boxes[4].box, 2, 1, 8, 4));
  CHECK(boxes[0].category == 1);
}

TEST_CASE("COCO: categories by their ids, corners from sizes, crowds; lists that don't fit together are refused") {
  const TemporaryFolder folder;
  const auto root = folder.path();
  write_file(root / "images/a.pgm", pgm(30, 40));
  const auto file = root / "instances.json";
  const std::string images = R"("images":[{"id":7,"file_name":"a.pgm","width":40,"height":30},
                                          {"id":8,"file_name":"b.pgm"}])";
  const std::string categories = R"("categories":[{"id":9,"name":"dog"},{"id":3,"name":"cat"}])";
  write_file(file, "{" + images + "," + categories +
                       R"(,"annotations":[{"image_id":7,"category_id":9,"bbox":[1,2,10,5],"iscrowd":1,"area":30},
                                          {"image_id":99,"category_id":3,"bbox":[1,2,10,5]}]})");
  const Annotations read = read_coco(file, root / "images");
  CHECK(read.classes == std::vector<std::string>{"cat", "dog"});
  REQUIRE(read.images.size() == 1);
  REQUIRE(read.images[0].boxes.size() == 1);
  CHECK(is(read.images[0].boxes[0].box, 1, 2, 11, 7));
  CHECK(read.images[0].boxes[0].crowd);
  CHECK(read.images[0].boxes[0].area == 30);
  REQUIRE(read.notes.size() == 2);
  CHECK_THAT(read.notes[0], Contains("b.pgm"));
  CHECK_THAT(read.notes[1], Contains("1 annotations are of images that"));

  const auto refused = [&](const std::string& text, const std::string& why) {
    write_file(file, text);
    CHECK_THROWS_WITH(read_coco(file, root / "images"), Contains("instances.json") && Contains(why));
  };
  refused("[", "no sound JSON");
  refused("{}", "no list 'categories'");
  refused("{" + images + "," + categories + R"(,"annotations":[{"image_id":7,"category_id":1,"bbox":[0,0,1,1]}]})",
          "annotations[0]: category_id 1 is none");
  refused("{" + images + "," + categories + R"(,"annotations":[{"image_id":7,"category_id":9,"bbox":[0,0,1]}]})",
          "annotations[0]: bbox: expected [x, y, width, height]");
  refused("{" + images + "," + categories + R"(,"annotations":[{"image_id":7,"category_id":9,"bbox":[0,0,1,1e999]}]})",
          "no sound JSON");
}

TEST_CASE("YOLO: shares of the sides, labels beside the images or in their own folder, names by number") {
  const TemporaryFolder folder;
  const auto root = folder.path();
  write_file(root / "images/train/a.pgm", pgm(30, 40));
  write_file(root / "images/train/b.pgm", pgm(30, 40));
  write_file(root / "images/train/c.pgm", pgm(30, 40));
  write_file(root / "labels/train/a.txt", "1 0.5 0.5 0.5 0.2\r\n\n0 0.1 0.1 0.2 0.2\n");
  write_file(root / "images/train/b.txt", "");
  write_file(root / "names.txt", "cat\ndog\n");
  const Annotations read = read_yolo(root / "images", root / "names.txt");
  REQUIRE(read.images.size() == 2);
  REQUIRE(read.images[0].boxes.size() == 2);
  CHECK(read.images[0].boxes[0].category == "dog");
  CHECK_THAT(read.notes.at(0), Contains("c.pgm"));
  BoxRepairs repairs;
  const auto boxes = checked_boxes(read.images[0], 30, 40, read.classes, repairs);
  CHECK(is(boxes[0].box, 10, 12, 30, 18));
  CHECK(read_yolo(root / "images", {}).classes == std::vector<std::string>{"0", "1"});
  write_file(root / "images/train/b.txt", "2 0.5 0.5 0.5 0.2\n");
  CHECK_THROWS_WITH(read_yolo(root / "images", root / "names.txt"), Contains("b.txt:1") && Contains("no class 2"));
  write_file(root / "images/train/b.txt", "1 0.5 0.5 0.5\n");
  CHECK_THROWS_WITH(read_yolo(root / "images", root / "names.txt"), Contains("expected 5 numbers"));
  write_file(root / "images/train/b.txt", "70000 0.5 0.5 0.5 0.2\n");
  CHECK_THROWS_WITH(read_yolo(root / "images", {}), Contains("b.txt:1") && Contains("from 0 to 65535"));
}

TEST_CASE("a table with a box a line gathers those of an image") {
  const TemporaryFolder folder;
  const auto root = folder.path();
  write_file(root / "a.pgm", pgm(30, 40));
  const auto table = root / "boxes.csv";
  write_file(table,
             "filename,width,height,class,xmin,ymin,xmax,ymax\na.pgm,40,30,cat,1,2,3,4\nb.pgm,4,3,cat,1,2,3,4\n"
             "a.pgm,40,30,dog,5,6,7,8\n");
  const Annotations read = read_box_table(table, root);
  REQUIRE(read.images.size() == 1);
  REQUIRE(read.images[0].boxes.size() == 2);
  CHECK(is(read.images[0].boxes[1].box, 5, 6, 7, 8));
  CHECK_THAT(read.notes.at(0), Contains("b.pgm"));
  write_file(table, "filename,class,xmin,ymin,xmax\na.pgm,cat,1,2,3\n");
  CHECK_THROWS_WITH(read_box_table(table, root), Contains("no column 'ymax'"));
  write_file(table, "filename,class,xmin,ymin,xmax,ymax\na.pgm,cat,1,2,x,4\n");
  CHECK_THROWS_WITH(read_box_table(table, root), Contains("boxes.csv:2") && Contains("found 'x'"));
}

TEST_CASE("boxes are put in order, clipped, left out and counted") {
  const AnnotatedImage image = with_boxes({{30, 20, 10, 5},    // corners swapped
                                           {-5, -5, 100, 10},  // beyond the image
                                           {50, 0, 60, 10},    // outside
                                           {5, 5, 5, 9},       // no area
                                           {1, 1, 9, 9},
                                           {1, 1, 9, 9},       // twice
                                           {0, 0, 1e39, 1}});  // no number of f32
  BoxRepairs repairs;
  AnnotatedImage endless = image;
  endless.boxes.back().box.right = std::numeric_limits<double>::infinity();
  const auto boxes = checked_boxes(endless, 30, 40, {"cat"}, repairs);
  REQUIRE(boxes.size() == 3);
  CHECK(is(boxes[0].box, 10, 5, 30, 20));
  CHECK(is(boxes[1].box, 0, 0, 40, 10));
  const std::vector<std::string> notes = repairs.notes();
  REQUIRE(notes.size() == 4);
  CHECK(notes[0] == "1 of 7 boxes had their corners swapped, which are put in order");
  CHECK(notes[1] == "1 of 7 boxes reached beyond their image and are clipped to it");
  CHECK_THAT(notes[2], Contains("3 of 7 boxes are left out: 1 without area, 1 outside their image, 1 not finite") &&
                           Contains("a.xml, box 3"));
  CHECK(notes[3] == "1 of 7 boxes are there twice and left out");
  CHECK_THROWS_WITH(checked_boxes(image, 30, 40, {"cats"}, repairs),
                    Contains("a.xml") && Contains("'cat' is not among") && Contains("cats"));
}

TEST_CASE("large images are shrunk with their boxes, and an image without boxes stays") {
  const TemporaryFolder folder;
  const auto root = folder.path();
  write_file(root / "a.pgm", pgm(60, 80));
  write_file(root / "b.pgm", pgm(1, 1));
  Annotations annotations;
  annotations.images = {with_boxes({{10, 20, 50, 60}}), with_boxes({})};
  annotations.images[0].file = root / "a.pgm";
  annotations.images[1].file = root / "b.pgm";
  BoxRepairs repairs;
  gpunn::data::DamagedFiles damaged(gpunn::Damaged::error);
  const std::vector<BoxedImage> images =
      read_boxed_images(annotations, {"cat"}, {.channels = 3, .most_side = 40}, repairs, damaged);
  CHECK(images[0].image.width == 40);
  CHECK(images[0].image.height == 30);
  CHECK(images[0].image.channels == 3);
  CHECK(images[0].scale == 0.5);
  CHECK(is(images[0].objects.at(0).box, 5, 10, 25, 30));
  CHECK(images[1].objects.empty());
  CHECK(repairs.notes() == std::vector<std::string>{"1 image shows no object"});
}

TEST_CASE("EXIF's orientation is read in either order of bytes, and turns pictures as viewers do") {
  const std::string big = std::string("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 26);
  const std::string little = std::string("II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0", 26);
  const auto jpeg = [](const std::string& tiff) {
    const auto length = static_cast<char>(2 + 6 + tiff.size());
    return std::string("\xff\xd8\xff\xe1\0", 5) + length + std::string("Exif\0\0", 6) + tiff + "\xff\xda";
  };
  CHECK(exif_orientation(jpeg(big)) == 6);
  CHECK(exif_orientation(jpeg(little)) == 8);
  CHECK(exif_orientation("\xff\xd8\xff\xda") == 1);
  CHECK(exif_orientation("") == 1);
  for (std::size_t cut = 0; cut < jpeg(big).size(); ++cut) CHECK(exif_orientation(jpeg(big).substr(0, cut)) >= 1);
  const Image image{2, 3, 1, {1, 2, 3, 4, 5, 6}};
  // As Pillow's ImageOps.exif_transpose has them.
  CHECK(turned_by_orientation(image, 2).values == std::vector<uint8_t>{3, 2, 1, 6, 5, 4});
  CHECK(turned_by_orientation(image, 3).values == std::vector<uint8_t>{6, 5, 4, 3, 2, 1});
  CHECK(turned_by_orientation(image, 4).values == std::vector<uint8_t>{4, 5, 6, 1, 2, 3});
  CHECK(turned_by_orientation(image, 5).values == std::vector<uint8_t>{1, 4, 2, 5, 3, 6});
  CHECK(turned_by_orientation(image, 6).values == std::vector<uint8_t>{4, 1, 5, 2, 6, 3});
  CHECK(turned_by_orientation(image, 7).values == std::vector<uint8_t>{6, 3, 5, 2, 4, 1});
  CHECK(turned_by_orientation(image, 8).values == std::vector<uint8_t>{3, 6, 2, 5, 1, 4});
  CHECK(turned_by_orientation(image, 6).width == 2);
}
