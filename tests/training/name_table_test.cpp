#include "runs/name_table.hpp"

#include <gpunn/error.hpp>

#include "catch.hpp"

using namespace gpunn;
using training::NameTable;

TEST_CASE("names are changed by the first row that fits") {
  const NameTable table = NameTable::parse(
      "conv1.weight: stem.conv.weight\n"
      "layer*.*.downsample.0.*: stage*.*.shortcut.conv.*\n"
      "layer*.*.conv*.weight: stage*.*.conv*.weight\n"
      "fc.*: output.*\n"
      "fc.bias: never\n",
      "t");
  CHECK(table.rename("conv1.weight") == "stem.conv.weight");
  CHECK(table.rename("layer3.12.downsample.0.weight") == "stage3.12.shortcut.conv.weight");
  CHECK(table.rename("layer1.0.conv2.weight") == "stage1.0.conv2.weight");
  CHECK(table.rename("fc.bias") == "output.bias");
  CHECK(table.rename("layer1.0.conv.weight") == "layer1.0.conv.weight");
  CHECK(table.rename("layer.0.conv1.weight") == "layer.0.conv1.weight");
  CHECK(table.rename("fc.bias.x") == "fc.bias.x");
  CHECK(table.rename("") == "");
  CHECK(NameTable().rename("a.b") == "a.b");
}

TEST_CASE("a star may have letters on both sides, and be left away on the right") {
  const NameTable table = NameTable::parse("a*c.x*: y.*\nb*.x: z\n", "t");
  CHECK(table.rename("abbc.x1") == "y.bb");
  CHECK(table.rename("ac.x1") == "ac.x1");
  CHECK(table.rename("ab.x1") == "ab.x1");
  CHECK(table.rename("b1.x") == "z");
}

TEST_CASE("a table is read from right to left for an export") {
  const NameTable table = NameTable::parse(
      "conv1.weight: stem.conv.weight\n"
      "layer*.*.downsample.0.*: stage*.*.shortcut.conv.*\n"
      "layer*.*.conv*.weight: stage*.*.conv*.weight\n"
      "fc.*: output.*\n"
      "head.bias: output.bias\n"
      "old.*: lost\n",
      "t");
  for (const std::string name : {"conv1.weight", "layer3.12.downsample.0.weight", "layer1.0.conv2.weight", "fc.bias"}) {
    CHECK(table.original(table.rename(name)) == name);
  }
  CHECK(table.original("other.bias") == "other.bias");
  CHECK(table.original("fc.weight") == std::nullopt);  // read again it would be output.weight
  CHECK(table.original("lost") == "lost");             // what the star stood for is gone
  CHECK(NameTable().original("a.b") == "a.b");

  const NameTable shadowed = NameTable::parse("a.*: first.*\n\"*.w\": \"*.w\"\n\"*.x\": second.*\n", "t");
  CHECK(shadowed.original("a.w") == std::nullopt);  // the row above renames it
  CHECK(shadowed.original("b.w") == "b.w");
  const NameTable letters = NameTable::parse("p*.q*: r*s*\n", "t");
  CHECK(letters.rename(letters.original("rasbs").value()) == "rasbs");
}

TEST_CASE("tables that are wrong") {
  CHECK_THROWS_WITH(NameTable::parse("a**b: c\nd: [e]\n\"*\": \"*.*\"\n", "t"),
                    Contains("t:1:1: more than one * between two dots") && Contains("t:2:1: expected the name") &&
                        Contains("t:3:1: the name on the right has more *"));
  CHECK_THROWS_WITH(NameTable::parse("- a\n", "t"), Contains("t:1:1: expected a table of names"));
  CHECK_THROWS_AS(NameTable::load("/no/such/table"), Error);
}
