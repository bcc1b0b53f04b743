// Keys of sections that are of a kind, put together from those of each kind.
#include "config/kinds.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "config/key_builders.hpp"

using namespace gpunn::config;

namespace {

struct Ball {
  double radius = 1;
};
struct Box {
  double width = 2, height = 3;
};
struct Tube {
  double radius = 4, height = 5;
};
struct Solid {
  std::variant<Ball, Box, Tube> kind;
  double weight = 0;
};

KeyOf<Solid> weight() { return number("weight", &Solid::weight, at_least(0), "Of the whole."); }
template <class Kind>
auto radius() {
  return number("radius", &Kind::radius, above(0), "Half the width.");
}
template <class Kind>
auto height() {
  return number("height", &Kind::height, above(0), "From below.");
}

std::vector<KindOf<Solid>> kinds() {
  return {
      make_kind<Ball, Solid>("ball", weight(), radius<Ball>()),
      make_kind<Box, Solid>("box", weight(), number("width", &Box::width, above(0), "To the sides."), height<Box>()),
      make_kind<Tube, Solid>("tube", weight(), radius<Tube>(), height<Tube>())};
}

KeyOf<Solid> key(const std::string& name) {
  const std::vector<KeyOf<Solid>> keys = keys_of_kinds(kinds());
  return *std::ranges::find(keys, name, &KeyOf<Solid>::path);
}

}  // namespace

TEST_CASE("a key of several kinds is there once, and says which they are") {
  std::vector<std::string> names;
  for (const KeyOf<Solid>& one : keys_of_kinds(kinds())) names.push_back(one.path);
  CHECK(names == std::vector<std::string>{"weight", "radius", "width", "height"});
  CHECK(key("weight").kinds.empty());  // all have it
  CHECK(key("radius").kinds == std::vector<std::string>{"ball", "tube"});
  CHECK(key("width").kinds == std::vector<std::string>{"box"});
}

TEST_CASE("new keys stand in front of the shared one that follows them in their kind") {
  const std::vector<KindOf<Solid>> tube_first = {
      make_kind<Tube, Solid>("tube", height<Tube>()),
      make_kind<Box, Solid>("box", number("width", &Box::width, above(0), "To the sides."), height<Box>(), weight())};
  std::vector<std::string> names;
  for (const KeyOf<Solid>& one : keys_of_kinds(tube_first)) names.push_back(one.path);
  CHECK(names == std::vector<std::string>{"width", "height", "weight"});
}

TEST_CASE("a shared key is that of the kind that is chosen") {
  Solid solid;
  const KeyOf<Solid> type = kind_key("type", kinds(), "Its shape.");
  CHECK(type.choices == std::vector<std::string>{"ball", "box", "tube"});
  CHECK(type.get(solid) == Value("ball"));
  type.set(solid, Value("tube"));
  CHECK(type.get(solid) == Value("tube"));
  CHECK(key("radius").get(solid) == Value(4.0));
  key("radius").set(solid, Value(7.0));
  key("weight").set(solid, Value(9.0));
  CHECK(std::get<Tube>(solid.kind).radius == 7);
  CHECK(solid.weight == 9);
  key("width").set(solid, Value(8.0));  // no key of a tube's
  CHECK(key("width").get(solid) == Value(2.0));
  type.set(solid, Value("ball"));
  CHECK(key("radius").get(solid) == Value(1.0));
}
