#include <gpunn/training.hpp>

#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

void add_diagnose(CommandLine& line) {
  auto request = std::make_shared<DiagnoseRequest>();
  Verb verb = line.program.add_verb("diagnose", "Find the op at which a run lost its device",
                                    {"gpunn diagnose runs/lenet_mnist/2025-01-02T03-04-05Z",
                                     "gpunn diagnose runs/lenet_mnist/2025-01-02T03-04-05Z --from 1200 --to 1203"});
  verb.add_option("run", request->run, "The run folder").required().type_name("RUN");
  verb.add_option("--from", request->first_step, "First step to run op by op; 0: the one after the last checkpoint")
      .not_negative()
      .type_name("N");
  verb.add_option("--to", request->last_step, "Last step; 0: the last of that epoch").not_negative().type_name("N");
  add_backend_option(verb, request->backend);
  add_json_flag(verb, line);
  verb.callback([&line, request] {
    line.action = [&line, request] {
      const FaultReport report = diagnose(*request);
      if (line.json) {
        print_json(to_json(report));
      } else {
        put("{}\n", printable(report.text()));
      }
      return report.found ? ExitCode::failed : ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
