#include <gpunn/report.hpp>

#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"

namespace gpunn::cli {

namespace {

uint64_t size_of(const std::filesystem::path& file) {
  std::error_code failure;
  const uint64_t bytes = std::filesystem::file_size(file, failure);
  if (failure) throw Error("can't look at " + file.string() + ": " + failure.message());
  return bytes;
}

}  // namespace

void add_report(CommandLine& line) {
  struct Options {
    ReportRequest request;
    std::string backend;
    std::vector<std::string> settings;
  };
  auto options = std::make_shared<Options>();
  Verb verb =
      line.program.add_verb("report", "Write a run's figures and pictures as one HTML page",
                            {"gpunn report runs/lenet_mnist/2025-01-02T03-04-05Z",
                             "gpunn report runs/lenet_mnist/2025-01-02T03-04-05Z --output lenet.html --mistakes 100"});
  verb.add_option("run", options->request.run, "The run folder").required().type_name("RUN");
  verb.add_option("--output", options->request.file, "File of the page, instead of report.html in the run folder")
      .type_name("FILE");
  verb.add_option("--mistakes", options->request.mistakes, "Number of the worst mistakes to show, at most")
      .capture_default_str()
      .range(0, 10'000)
      .type_name("N");
  add_backend_option(verb, options->backend);
  add_model_settings(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      ReportRequest request = options->request;
      request.overrides = model_overrides(options->settings, options->backend);
      Quiet announcements;
      const std::filesystem::path file = write_report(request, &announcements);
      if (line.json) {
        print_json({{"file", file.string()}, {"bytes", size_of(file)}});
      } else {
        put("report    {}\n", file.string());
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
