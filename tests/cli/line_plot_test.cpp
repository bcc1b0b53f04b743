#include "cli/terminal/line_plot.hpp"

#include <sstream>

#include "catch.hpp"
#include "cli/reports/schedule_plan.hpp"
#include "cli/terminal/terminal.hpp"

using namespace gpunn;
using namespace gpunn::cli;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("a line is drawn from its lowest value to its highest") {
  const LinePlot rising{.values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, .x_end = 12, .x_label = "epoch"};
  const std::vector<std::string> lines = lines_of(drawing(rising, 24, false));
  REQUIRE(lines.size() == 14);
  CHECK(lines[0] == "        11 |           *");
  CHECK(lines[11] == "         0 |**");
  CHECK(lines[12] == "           +------------");
  CHECK(lines[13] == "            0  epoch  12");
  // Each step to the next row is drawn, without a hole.
  for (int i = 1; i < 11; ++i) CHECK(lines[11 - static_cast<std::size_t>(i)].find("**") != std::string::npos);
}

TEST_CASE("a drop is an upright line, whatever the width") {
  LinePlot drop{.values = std::vector<float>(5000, 1.0F), .x_end = 5, .x_label = ""};
  for (std::size_t i = 2500; i < 5000; ++i) drop.values[i] = 0.01F;
  for (const std::size_t columns : {20U, 33U, 100U}) {
    for (const std::string& line : lines_of(drawing(drop, columns, false))) CHECK(display_width(line) <= columns);
    const std::vector<std::string> lines = lines_of(drawing(drop, columns, false));
    for (std::size_t row = 1; row < 11; ++row) {
      CHECK(lines[row].find('*') == lines[row].rfind('*'));
      CHECK(lines[row].find('*') != std::string::npos);
    }
  }
  drop.logarithmic = true;
  CHECK_THAT(drawing(drop, 40, false), Contains("      0.01 |"));
}

TEST_CASE("a few values, or equal ones, are a line too") {
  const LinePlot flat{.values = {0.5F}, .x_end = 1, .x_label = "epoch"};
  CHECK_THAT(drawing(flat, 30, false), Contains(std::string(18, '*')));
  CHECK_THAT(drawing({.values = {0, 0}, .x_end = 1, .x_label = ""}, 30, false), Contains(std::string(18, '*')));
  CHECK(drawing({.values = {}, .x_end = 1, .x_label = ""}, 30, false).empty());
  // Braille: the top row of dots of the top line.
  CHECK_THAT(drawing(flat, 30, true), Contains("⠉⠉⠉⠉"));
}

TEST_CASE("of many turns of a schedule the first and the last are listed") {
  ScheduleReport report{.notice = "",
                        .experiment = "many",
                        .type = "step",
                        .steps_per_epoch = 10,
                        .steps = 100,
                        .learning_rates = std::vector<float>(100, 0.1F),
                        .points = {}};
  for (int64_t i = 0; i < 100; ++i) report.points.push_back({i + 1, static_cast<double>(i) / 10, 0.1, "drop"});
  const std::string text = schedule_text(report, 80, false, false);
  CHECK_THAT(text, Contains("learning rate of many: step, 100 steps, 10 an epoch"));
  CHECK_THAT(text,
             Contains("77 more") && Contains("  19    1.8 ") && !Contains("  20    1.9 ") && Contains(" 97    9.6 "));
  report.points.resize(24);
  CHECK_THAT(schedule_text(report, 80, false, false), !Contains("more"));
}
