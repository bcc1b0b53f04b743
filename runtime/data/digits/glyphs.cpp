#include "data/digits/glyphs.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <charconv>
#include <string>

namespace gpunn::data {

namespace {

struct GlyphPath {
  int digit;
  std::string_view path;
};

constexpr std::array kPaths = {
    // An oval, and one whose ends cross.
    GlyphPath{0, "M 50 0 C 22 0 16 28 16 50 C 16 78 26 100 50 100 C 74 100 84 78 84 50 C 84 26 76 0 50 0"},
    GlyphPath{0, "M 66 8 C 42 -8 22 20 22 54 C 22 84 36 100 50 100 C 70 100 80 76 78 46 C 76 16 62 0 42 6"},
    // A stroke, one with a flag, one with a flag and a foot.
    GlyphPath{1, "M 50 0 L 50 100"},
    GlyphPath{1, "M 32 20 L 54 0 L 54 100"},
    GlyphPath{1, "M 34 20 L 54 0 L 54 100 M 30 100 L 78 100"},
    // A straight foot, a rounder head, a loop in the foot.
    GlyphPath{2, "M 20 26 C 20 -8 80 -10 80 28 C 80 54 42 70 18 100 L 84 100"},
    GlyphPath{2, "M 22 14 C 44 -8 82 -2 78 28 C 74 56 40 78 16 98 C 40 90 62 98 86 96"},
    GlyphPath{2, "M 22 22 C 30 -8 82 -6 76 32 C 70 62 40 84 26 94 C 8 104 8 74 28 80 C 48 88 60 104 88 92"},
    // Round, with a flat top, and with a knot in the middle.
    GlyphPath{3, "M 20 14 C 40 -8 78 -4 76 24 C 74 44 56 48 40 48 C 66 48 84 56 82 76 C 80 106 36 108 16 86"},
    GlyphPath{3, "M 20 2 L 78 2 L 46 40 C 70 40 84 54 82 72 C 80 104 34 106 16 88"},
    GlyphPath{3, "M 24 10 C 44 -6 78 -2 74 22 C 70 46 40 52 36 46 C 34 38 82 46 80 76 C 78 104 36 106 18 92"},
    // Open, with a curved arm, and closed.
    GlyphPath{4, "M 26 0 L 16 58 L 84 56 M 70 0 L 66 100"},
    GlyphPath{4, "M 24 4 C 18 26 10 52 26 56 C 46 60 64 54 78 46 M 76 2 C 70 34 70 66 70 100"},
    GlyphPath{4, "M 64 100 L 64 0 L 12 66 L 90 66"},
    // In one stroke, and with the bar on its own.
    GlyphPath{5, "M 78 0 L 28 0 L 24 44 C 50 30 84 42 82 70 C 80 106 34 106 16 88"},
    GlyphPath{5, "M 32 4 L 26 46 C 46 34 80 42 78 72 C 76 102 36 104 18 90 M 32 4 L 82 0"},
    // A bent stem, and a straight one with a round belly.
    GlyphPath{6,
              "M 70 2 C 40 14 18 44 18 70 C 18 92 34 100 50 100 C 70 100 82 88 82 74 C 82 56 66 48 50 50 C 34 52 22 62 "
              "20 76"},
    GlyphPath{6, "M 54 0 C 30 26 20 50 20 72 C 20 108 78 110 78 76 C 78 46 34 46 22 78"},
    // Plain, with a bar, and with a serif and a bent leg.
    GlyphPath{7, "M 16 2 L 82 2 L 42 100"},
    GlyphPath{7, "M 16 2 L 82 2 L 44 100 M 34 52 L 78 48"},
    GlyphPath{7, "M 16 18 L 18 2 L 84 2 C 66 32 48 64 46 100"},
    // In one stroke from the top right, and two rings.
    GlyphPath{8, "M 76 14 C 62 -6 24 -4 26 22 C 28 48 80 48 80 76 C 80 108 20 108 20 78 C 20 52 66 44 76 14"},
    GlyphPath{8, "M 50 46 C 20 44 22 0 50 0 C 78 0 80 44 50 46 C 10 48 12 100 50 100 C 88 100 90 48 50 46"},
    // A straight leg, and a bent one.
    GlyphPath{9, "M 78 26 C 76 -8 22 -8 22 28 C 22 58 76 56 78 26 L 76 100"},
    GlyphPath{9, "M 76 30 C 78 -8 24 -12 22 26 C 20 58 68 58 76 30 C 82 62 72 98 32 98"},
};

class PathReader {
 public:
  explicit PathReader(std::string_view path) : path_(path) {}

  std::vector<Curve> read() {
    std::vector<Curve> curves;
    Point pen;
    for (skip_spaces(); at_ < path_.size(); skip_spaces()) {
      const char letter = path_[at_++];
      if (letter == 'M') {
        pen = point();
      } else if (letter == 'L') {
        const Point to = point();
        const Point step = {(to.x - pen.x) / 3, (to.y - pen.y) / 3};
        curves.push_back({pen, {pen.x + step.x, pen.y + step.y}, {to.x - step.x, to.y - step.y}, to, true});
        pen = to;
      } else if (letter == 'C') {
        const Point handle1 = point();
        const Point handle2 = point();
        const Point to = point();
        curves.push_back({pen, handle1, handle2, to, false});
        pen = to;
      } else {
        fail("expected M, L or C");
      }
    }
    return curves;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error("path '" + std::string(path_) + "': " + what + " at character " + std::to_string(at_));
  }
  void skip_spaces() {
    while (at_ < path_.size() && path_[at_] == ' ') ++at_;
  }
  double number() {
    skip_spaces();
    int value = 0;
    const auto [end, code] = std::from_chars(path_.data() + at_, path_.data() + path_.size(), value);
    if (code != std::errc{}) fail("expected a whole number");
    at_ = static_cast<std::size_t>(end - path_.data());
    return value;
  }
  Point point() {
    const double x = number();
    return {x, number()};
  }

  std::string_view path_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Curve> parse_path(std::string_view path) { return PathReader(path).read(); }

const std::vector<std::vector<Glyph>>& glyphs() {
  static const std::vector<std::vector<Glyph>> all = [] {
    std::vector<std::vector<Glyph>> by_digit(10);
    for (const auto& [digit, path] : kPaths)
      by_digit[static_cast<std::size_t>(digit)].push_back({digit, parse_path(path)});
    return by_digit;
  }();
  return all;
}

}  // namespace gpunn::data
