#include "config/yaml_tree.hpp"

#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::config;
using Kind = YamlNode::Kind;

TEST_CASE("each value knows its line and column") {
  const YamlNode root = parse_yaml("a: 1\nb:\n  - x\n  - {c: \"2\"}\n", "f.yaml");
  REQUIRE(root.kind == Kind::map);
  const YamlNode* a = root.find("a");
  REQUIRE(a != nullptr);
  CHECK((a->where.line == 1 && a->where.column == 4));
  CHECK(a->where.file == "f.yaml");
  CHECK_FALSE(a->quoted);
  const YamlNode* b = root.find("b");
  REQUIRE((b != nullptr && b->items.size() == 2));
  CHECK((b->items[0].where.line == 3 && b->items[0].where.column == 5));
  const YamlNode* c = b->items[1].find("c");
  REQUIRE(c != nullptr);
  CHECK((c->where.line == 4 && c->where.column == 9));
  CHECK(c->quoted);
  CHECK(root.find("d") == nullptr);
}

TEST_CASE("null, and what looks like it") {
  const YamlNode root = parse_yaml("a:\nb: null\nc: ~\nd: 'null'\n", "f");
  CHECK(root.find("a")->kind == Kind::null);
  CHECK(root.find("b")->kind == Kind::null);
  CHECK(root.find("c")->kind == Kind::null);
  CHECK(root.find("d")->kind == Kind::scalar);
}

TEST_CASE("a duplicate key is an error, each at its place") {
  CHECK_THROWS_WITH(parse_yaml("a: 1\nb: {x: 1, x: 2}\na: 3\n", "f.yaml"),
                    Contains("f.yaml:2:11: duplicate key 'x'; it is already given in line 2") &&
                        Contains("f.yaml:3:1: duplicate key 'a'; it is already given in line 1"));
}

TEST_CASE("bad syntax has its place, and is told in our words") {
  const auto told = [](const std::string& text, const std::string& fault) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_yaml(text, "f.yaml"), Contains(fault));
  };
  told("a: [1, 2\nb: 3\n", "f.yaml:2:2: YAML syntax: a ']' or a ',' is missing before this");
  told("a: {b: 1\nc: 3\n", "YAML syntax: a '}' or a ',' is missing before this");
  told("a: 1]\nb: ]\n", "f.yaml:2:4: YAML syntax: this closes a bracket that was not opened");
  told("a: 1\n\tb: 2\n", "f.yaml:2:");
  told("a: b: c\n", "f.yaml:1:5: YAML syntax: a second ': ' in one line");
  told("a:\n  b: 1\n c: 2\n", "f.yaml:3:2: YAML syntax: this continues neither the map nor the list above it");
  told("a:\n  - 1\n  b: 2\n", "f.yaml:3:3: YAML syntax: this continues neither the map nor the list above it");
  told("a: - 1\n", "f.yaml:1:4: YAML syntax: a list item is not allowed here");
  told("a: @b\n", "f.yaml:1:4: YAML syntax: a value can't begin with");
  told("a: \"C:\\data\"\n", "YAML syntax: unknown escape in double quotes");
  told("a: *unknown\n", "f.yaml:1:4: YAML syntax: '*' and '&' begin the name of an anchor");
  told("a: *\n", "YAML syntax: '*' and '&' begin the name of an anchor");
  told("a: |x\n  b\n", "YAML syntax: only '+', '-' or an indentation");
}

TEST_CASE("empty files, several documents, tags and odd keys are errors") {
  CHECK_THROWS_WITH(parse_yaml("", "f.yaml"), Contains("f.yaml: the file is empty"));
  CHECK_THROWS_WITH(parse_yaml("# nothing but this\n", "f.yaml"), Contains("f.yaml: the file is empty"));
  CHECK_THROWS_WITH(parse_yaml("a: 1\n---\nb: 2\n", "f.yaml"), Contains("f.yaml:3:1: a second YAML document"));
  CHECK_THROWS_WITH(parse_yaml("a: !!int 5\n", "f.yaml"), Contains("f.yaml:1:4: tags such as"));
  CHECK_THROWS_WITH(parse_yaml("a: !mine {b: 1}\n", "f.yaml"), Contains("are not supported"));
  CHECK_THROWS_WITH(parse_yaml("? [a, b]\n: 1\n", "f.yaml"),
                    Contains("f.yaml:1:3: a key must be a word, found a list"));
}

TEST_CASE("aliases are copies") {
  const YamlNode root = parse_yaml("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n", "f");
  CHECK(root.find("b")->find("k")->scalar == "1");
  CHECK(root.find("c")->items[1].find("k")->scalar == "1");
}

TEST_CASE("an alias bomb is refused") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= 9; ++i) {
    const std::string n = std::to_string(i), m = std::to_string(i - 1);
    text += "a" + n + ": &a" + n + " [";
    for (int j = 0; j < 10; ++j) text += (j > 0 ? ", *a" : "*a") + m;
    text += "]\n";
  }
  CHECK_THROWS_WITH(parse_yaml(text, "f.yaml"), Contains("more than 100000 values"));
}

TEST_CASE("an alias to what it is in is refused") {
  CHECK_THROWS_WITH(parse_yaml("a: &x [1, *x]\n", "f.yaml"),
                    Contains("f.yaml:1:11: an alias to something that contains"));
}

TEST_CASE("deep nesting and large files are refused, fast") {
  CHECK_THROWS_WITH(parse_yaml(std::string(1000, '[') + "x" + std::string(1000, ']'), "f.yaml"),
                    Contains("f.yaml:1:65: nested more than 64 levels"));
  CHECK_NOTHROW(parse_yaml(std::string(64, '[') + "x" + std::string(64, ']'), "f.yaml"));
  CHECK_THROWS_AS(parse_yaml(std::string(1000000, '['), "f.yaml"), ConfigError);
  CHECK_THROWS_WITH(parse_yaml(std::string(1000, '{'), "f.yaml"), Contains("f.yaml:1:"));
  std::string dashes;
  for (int i = 0; i < 100000; ++i) dashes += "- ";
  CHECK_THROWS_AS(parse_yaml(dashes, "f.yaml"), ConfigError);
  CHECK_THROWS_WITH(parse_yaml(std::string(kLargestYamlFile + 1, 'a'), "f.yaml"),
                    Contains("f.yaml: larger than the 1.0 MiB allowed"));
  std::string commas = "[";
  for (int i = 0; i < 200000; ++i) commas += "a,";
  CHECK_THROWS_WITH(parse_yaml(commas + "]", "f.yaml"), Contains("more than 100000 values"));
}

TEST_CASE("a description is short") {
  YamlNode node;
  CHECK(describe(node) == "nothing");
  node.kind = Kind::scalar;
  node.scalar = "abc";
  CHECK(describe(node) == "'abc'");
  node.quoted = true;
  CHECK(describe(node) == "the text \"abc\"");
  node.scalar = std::string(5000, 'x');
  CHECK(describe(node).size() < 100);
}
