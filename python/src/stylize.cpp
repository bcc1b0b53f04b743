// Pictures in the style of others.
#include <gpunn/error.hpp>
#include <gpunn/stylize.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "values/record.hpp"
#include "values/settings.hpp"
#include "values/words.hpp"

namespace gpunn::python {

namespace {

namespace fs = std::filesystem;

FeatureColours colours_named(const std::string& name) {
  if (name == "centred") return FeatureColours::centred;
  if (name == "standardised") return FeatureColours::standardised;
  throw Error("colours: expected \"centred\" or \"standardised\", found \"" + name + "\"", ExitCode::usage);
}

void bind_requests(nb::module_& module) {
  nb::class_<StylizeRequest>(module, "StylizeRequest", "A picture to paint.")
      .def(nb::init<>())
      .def_rw("content", &StylizeRequest::content)
      .def_rw("style", &StylizeRequest::style)
      .def_rw("to", &StylizeRequest::to)
      .def_rw("features", &StylizeRequest::features)
      .def_rw("weights", &StylizeRequest::weights)
      .def("set_colours", [](StylizeRequest& r, const std::string& name) { r.colours = colours_named(name); })
      .def_rw("content_layers", &StylizeRequest::content_layers)
      .def_rw("style_layers", &StylizeRequest::style_layers)
      .def_rw("steps", &StylizeRequest::steps)
      .def_rw("optimizer", &StylizeRequest::optimizer)
      .def_rw("learning_rate", &StylizeRequest::learning_rate, nb::arg("learning_rate").none())
      .def_rw("history", &StylizeRequest::history)
      .def_rw("content_weight", &StylizeRequest::content_weight, nb::arg("content_weight").none())
      .def_rw("style_weight", &StylizeRequest::style_weight, nb::arg("style_weight").none())
      .def_rw("variation_weight", &StylizeRequest::variation_weight)
      .def_rw("original_colours", &StylizeRequest::original_colours)
      .def_rw("from_noise", &StylizeRequest::from_noise)
      .def_rw("seed", &StylizeRequest::seed)
      .def_rw("size", &StylizeRequest::size)
      .def_rw("style_size", &StylizeRequest::style_size)
      .def_rw("preview_every", &StylizeRequest::preview_every)
      .def("set_precision", [](StylizeRequest& r, const std::string& name) { r.precision = precision_named(name); })
      .def_rw("backend", &StylizeRequest::backend)
      .def_rw("device", &StylizeRequest::device)
      .def_rw("threads", &StylizeRequest::threads);
}

void bind_results(nb::module_& module) {
  Record<StyleLosses>(module, "StyleLosses", "The weighted losses of a picture while it is painted.")
      .field("total", &StyleLosses::total)
      .field("content", &StyleLosses::content)
      .field("style", &StyleLosses::style)
      .field("variation", &StyleLosses::variation);
  Record<StylizeReport>(module, "StylizeReport", "How far a painting is.")
      .field("step", &StylizeReport::step)
      .field("steps", &StylizeReport::steps)
      .field("losses", &StylizeReport::losses, "In front of the step.")
      .field("seconds", &StylizeReport::seconds);
  Record<StylizedImage>(module, "StylizedImage", "A picture that was painted, and how its loss fell.")
      .field("to", &StylizedImage::to, "The PNG file.")
      .field("height", &StylizedImage::height)
      .field("width", &StylizedImage::width)
      .field("steps", &StylizedImage::steps)
      .field("first", &StylizedImage::first, "Losses of the start.")
      .field("last", &StylizedImage::last, "Losses of the result.")
      .field("seconds", &StylizedImage::seconds, "In the steps.")
      .field("notes", &StylizedImage::notes)
      .of()
      .def_ro("history", &StylizedImage::history, "The total in front of each step.");
  Record<PaintedImage>(module, "PaintedImage", "An image that a trained network painted in one style.")
      .field("source", &PaintedImage::from)
      .field("to", &PaintedImage::to, "The PNG file.")
      .field("height", &PaintedImage::height)
      .field("width", &PaintedImage::width)
      .field("style", &PaintedImage::style, "Counts from 0.")
      .field("seconds", &PaintedImage::seconds, "In the model, for all styles.")
      .field("notes", &PaintedImage::notes, "What of the picture the result does not have.");
}

}  // namespace

void bind_stylize(nb::module_& module) {
  bind_requests(module);
  bind_results(module);
  module.def(
      "stylize",
      [](const StylizeRequest& request, nb::handle report) {
        return on_errand(
            true,
            [request, report](Errand& errand) {
              const auto tell = [&](const StylizeReport& told) {
                errand.ask([&] { report(nb::cast(told, nb::rv_policy::copy)); });
              };
              return stylize(request, report.is_none() ? std::function<void(const StylizeReport&)>() : tell,
                             [&errand] { return errand.stopped(); });
            },
            "a painting");
      },
      nb::arg("request"), nb::arg("report").none(), "Paints a picture in the style of another.");
  module.def(
      "paint",
      [](const fs::path& model, const std::vector<fs::path>& images, const fs::path& to, int64_t size,
         std::optional<int64_t> style, bool original_colours, const std::string& damaged, const Settings& settings) {
        const PaintRequest request{.inputs = images,
                                   .to = to,
                                   .size = size,
                                   .style = style,
                                   .original_colours = original_colours,
                                   .damaged = damaged_named(damaged)};
        return on_errand(false, [trained = TrainedModel{model, overrides_of(settings)}, request](Errand&) {
          return paint(trained, request);
        });
      },
      nb::arg("model"), nb::arg("images"), nb::arg("to"), nb::arg("size"), nb::arg("style").none(),
      nb::arg("original_colours"), nb::arg("damaged"), nb::arg("settings"), "Paints images by a trained network.");
}

}  // namespace gpunn::python
