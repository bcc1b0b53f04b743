#include <fmt/format.h>

#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

using chart::escaped;

std::string mistakes_section(const Contents& contents) {
  if (contents.mistakes.empty()) return "";
  const auto name = [&](int64_t index) {
    return numbered_name(index, contents.evaluation.classes[static_cast<std::size_t>(index)].name);
  };
  const std::string part = name_of(contents.evaluation.total.part);
  std::string html = fmt::format(
      "<p>Rows of the {} data that were taken for another class, those with the largest loss first.</p>\n"
      "<ol class=\"mistakes\" id=\"mistakes\">\n",
      part);
  if (const ShownMistake& first = contents.mistakes.front(); !first.map.empty()) {
    html.insert(html.find("</p>"),
                fmt::format(" The second picture shows in bright colours what spoke for the class that "
                            "each was taken for, by Grad-CAM of the layer {}.",
                            escaped(first.layer)));
  }
  for (const ShownMistake& shown : contents.mistakes) {
    const Mistake& one = shown.mistake;
    const std::string label = name(one.label), predicted = name(one.predicted);
    html += "<li><figure>";
    if (shown.picture) {
      html +=
          image(*shown.picture, fmt::format("{} row {}, a {} that was taken for {}", part, one.row, label, predicted));
    } else if (!shown.values.empty()) {
      html += "<p>" + escaped(shown.values) + "</p>";
    }
    if (!shown.map.empty()) {
      html += fmt::format(
          R"(<img class="map" src="data:image/png;base64,{}" alt="Parts of it that speak for {} are bright">)",
          chart::base64(shown.map), escaped(predicted));
    }
    html += fmt::format(
        "<figcaption><strong>{}</strong>, taken for <strong>{}</strong> with {}; its own class got {}. Loss {}, {} "
        "row {}</figcaption></figure></li>\n",
        escaped(label), escaped(predicted), percent(one.probability), percent(one.label_probability), decimal(one.loss),
        part, one.row);
  }
  return html + "</ol>\n";
}

std::string filters_section(const Contents& contents) {
  if (!contents.filters) return "";
  const FilterGrid& grid = *contents.filters;
  const std::string which = grid.shown < grid.filters
                                ? fmt::format("The first {} of {} filters", grid.shown, grid.filters)
                                : fmt::format("The {} filters", grid.filters);
  std::string how = "grey is zero, white the largest positive weight of a filter, black the largest negative one";
  if (grid.by_channel) {
    how = fmt::format("a row is a filter, a column one of {} input channels; {}",
                      grid.shown_channels < grid.channels
                          ? fmt::format("the first {} of {}", grid.shown_channels, grid.channels)
                          : std::to_string(grid.channels),
                      how);
  } else if (grid.channels == 3) {
    how = "red, green and blue are the weights of the three channels; middle grey is zero";
  }
  return fmt::format("<figure class=\"filters\">{}<figcaption>{} of {}: {}.</figcaption></figure>\n",
                     image(grid.raster, which + " of " + contents.convolution + " as pictures; " + how), which,
                     escaped(contents.convolution), how);
}

}  // namespace gpunn::reports
