#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "catch.hpp"
#include "chart/chart.hpp"
#include "chart/palette.hpp"
#include "chart/svg.hpp"

using namespace gpunn::chart;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// The paths' data, one string.
std::string paths(const std::string& document) {
  std::string data;
  for (auto at = document.find("<path d=\""); at != std::string::npos; at = document.find("<path d=\"", at + 1)) {
    data += document.substr(at + 9, document.find('"', at + 9) - at - 9) + ";";
  }
  return data;
}

Chart one_panel(std::vector<Series> series, Scale scale = Scale::linear) {
  return {"title", "subtitle", {{"step", "loss", scale, true, std::move(series)}}};
}

// Of two colours "#rrggbb", as WCAG 2 defines it.
double contrast(std::string_view a, std::string_view b) {
  const auto luminance = [](std::string_view colour) {
    const double share[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double value = std::stoi(std::string(colour.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
      sum += share[i] * (value <= 0.03928 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4));
    }
    return sum + 0.05;
  };
  const double first = luminance(a), second = luminance(b);
  return std::max(first, second) / std::min(first, second);
}

}  // namespace

TEST_CASE("texts are escaped, and what XML forbids is replaced") {
  CHECK(escaped("a<b>&\"c'") == "a&lt;b&gt;&amp;&quot;c&#39;");
  CHECK(escaped("two\n\tlines") == "two\n\tlines");
  CHECK(escaped("caf\xC3\xA9 \xF0\x9F\x98\x80") == "caf\xC3\xA9 \xF0\x9F\x98\x80");
  for (const char* bad : {"\x01", "\x1b", "\xFF", "\xC3", "\xED\xA0\x80", "\xC0\xAF", "\xEF\xBF\xBF"}) {
    const std::string shown = escaped(bad);
    CHECK_THAT(shown, Contains("\xEF\xBF\xBD"));
    CHECK(shown.find(bad) == std::string::npos);
  }
  const std::string document = svg({"<script>", "a & b", {{"x", "y", Scale::linear, false, {{"</svg>", {{0, 1}}}}}}});
  CHECK(count(document, "</svg>") == 1);
  CHECK(document.find("<script>") == std::string::npos);
}

TEST_CASE("lines go from left to right and up with the value") {
  const std::string data = paths(svg(one_panel({{"a", {{0, 0}, {10, 1}}}})));
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  REQUIRE(std::sscanf(data.c_str(), "M%lf %lfL%lf %lf;", &x1, &y1, &x2, &y2) == 4);
  CHECK(x2 > x1);
  CHECK(y2 < y1);
}

TEST_CASE("a point that is no number interrupts its line") {
  const std::string document = svg(one_panel({{"a", {{0, 1}, {1, 2}, {2, kNaN}, {3, 2}, {4, INFINITY}, {5, 1}}}}));
  CHECK(count(paths(document), "M") == 3);
  CHECK(document.find("nan") == std::string::npos);
  CHECK(document.find("inf") == std::string::npos);
}

TEST_CASE("scattered points have no line between them, however many they are") {
  Series points{"rows", {}, true};
  for (int i = 0; i < 100; ++i) points.points.push_back({static_cast<double>(i % 10), static_cast<double>(i)});
  const std::string document = svg(one_panel({points, {"equal", {{0, 0}, {9, 99}}}}));
  CHECK(count(document, "<circle ") == 100 + 2 + 2);  // with the ends of the line, and the legend
  CHECK(count(paths(document), "L") == 1);
}

TEST_CASE("a logarithmic panel leaves out what is not above 0") {
  const std::string document = svg(one_panel({{"a", {{0, 0}, {1, 1}, {2, -1}, {3, 100}}}}, Scale::logarithmic));
  CHECK(count(paths(document), "M") == 2);
  CHECK(document.find("nan") == std::string::npos);
}

TEST_CASE("a panel without points says so, and a chart without panels is a document") {
  CHECK_THAT(svg(one_panel({})), Contains("no data"));
  CHECK_THAT(svg(one_panel({{"a", {{0, kNaN}}}})), Contains("no data"));
  CHECK_THAT(svg({"t", "s", {}}), Contains("</svg>"));
}

TEST_CASE("each series has a colour of its own, the same in the legend and in every panel") {
  const Series a{"first", {{0, 1}, {1, 2}}}, b{"second", {{0, 1}, {1, 2}}};
  const std::string document =
      svg({"t", "s", {{"x", "y", Scale::linear, false, {a, b}}, {"x", "y", Scale::linear, false, {a, b}}}});
  CHECK(count(document, ">first</text>") == 1);
  // A line in the legend and one in each panel.
  CHECK(count(document, "stroke=\"#0072b2\"") == 3);
  CHECK(count(document, "stroke=\"#d55e00\"") == 3);
}

TEST_CASE(
    "each colour of a chart has its counterpart where the reader's system is dark, and can be seen on its ground") {
  Chart chart = one_panel({});
  for (int i = 0; i < 8; ++i) chart.panels[0].series.push_back({std::to_string(i), {{0, 1}, {1, 2}}});
  const std::string document = svg(chart), drawn = document.substr(document.find("</style>"));
  for (std::size_t at = drawn.find("=\"#"); at != std::string::npos; at = drawn.find("=\"#", at + 1)) {
    CHECK_THAT(document, Contains("[fill='" + drawn.substr(at + 2, 7) + "']{fill:#"));
  }
  for (const Palette& palette : {kOnLight, kOnDark}) {
    for (const std::string_view text : {palette.ink, palette.quiet}) CHECK(contrast(text, palette.ground) >= 4.5);
    for (const std::string_view line : palette.lines) CHECK(contrast(line, palette.ground) >= 3);
    CHECK(contrast(palette.frame, palette.ground) >= 3);
  }
}

TEST_CASE("a chart within a page has the page's colours, and the size that it is given") {
  Chart chart = one_panel({{"a", {{0, 1}, {1, 2}}}});
  chart.colours = Colours::of_page;
  chart.panel_width = 400;
  const std::string document = svg(chart);
  CHECK_THAT(document,
             Contains("stroke=\"var(--line-1)\"") && Contains("fill=\"var(--ink)\"") && Contains("viewBox=\"0 0 400 "));
  CHECK(document.find("=\"#") == std::string::npos);
}

TEST_CASE("an axis is logarithmic where the small values would not be seen") {
  CHECK(fitting_scale({{"a", {{0, 1}, {1, 9}}}}) == Scale::linear);
  CHECK(fitting_scale({{"a", {{0, 1}, {1, kNaN}}}, {"b", {{0, 11}}}}) == Scale::logarithmic);
  CHECK(fitting_scale({{"a", {{0, 0}, {1, 100}}}}) == Scale::linear);
  CHECK(fitting_scale({}) == Scale::linear);
}

TEST_CASE("a long legend goes on in another row, and the plots make room") {
  std::vector<Series> series;
  for (int i = 0; i < 12; ++i) series.push_back({"a rather long backend name " + std::to_string(i), {{0, 1}, {1, 2}}});
  const auto height = [](const std::string& document) {
    double width = 0, value = 0;
    REQUIRE(std::sscanf(document.c_str() + document.find("width="), "width=\"%lf\" height=\"%lf\"", &width, &value) ==
            2);
    return value;
  };
  CHECK(height(svg(one_panel(series))) > height(svg(one_panel({series[0]}))) + 50);
}
