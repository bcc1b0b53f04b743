#include "training/device_loss.hpp"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "common/input_file.hpp"
#include "common/process.hpp"
#include "common/text.hpp"
#include "execution/op_text.hpp"
#include "feed/evaluation_part.hpp"
#include "runs/run_folder.hpp"
#include "session/training_length.hpp"

namespace gpunn {

namespace {

std::string steps_text(int64_t first, int64_t last) {
  if (first == last) return "step " + std::to_string(first);
  return "steps " + std::to_string(first) + " to " + std::to_string(last);
}

int64_t step_of(const storage::Checkpoint& checkpoint) {
  const auto found = checkpoint.counters.find("step");
  return found == checkpoint.counters.end() ? 0 : found->second;
}

std::vector<std::string> arguments_of(const DiagnoseRequest& request) {
  std::vector<std::string> arguments{"diagnose", request.run.string(),
                                     "--from",   std::to_string(request.first_step),
                                     "--to",     std::to_string(request.last_step)};
  if (!request.backend.empty()) arguments.insert(arguments.end(), {"--backend", request.backend});
  return arguments;
}

// The text in what `gpunn diagnose --json` printed, or why there is none. A plugin may have printed something too.
std::string told(const ProcessResult& result) {
  const std::size_t begin = result.output.find('{');
  const std::size_t end = result.output.rfind('}') + 1;  // 0 where there is none
  const std::string text = begin < end ? result.output.substr(begin, end - begin) : "";
  const auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_object() && document.contains("text") && document["text"].is_string()) {
    return "Replayed in a new process, " + document["text"].get<std::string>() + ".";
  }
  std::string why = result.ending;
  if (document.is_object() && document.contains("error") && document["error"].contains("message")) {
    why = document["error"]["message"].get<std::string>();
  }
  return "Replaying the steps in a new process failed: " + why + ".";
}

}  // namespace

std::string FaultReport::text() const {
  const std::string place =
      step > 0 ? "step " + std::to_string(step) : "the evaluation after step " + std::to_string(last_step);
  if (found && op.empty()) {
    return "the device is lost before " + steps_text(first_step, last_step) + ", where ops are not looked at: " + error;
  }
  if (found) return "the device is lost in " + op + " of " + place + ", a kernel of '" + plugin + "'";
  if (first_step > last_step) return place + " ran op by op without a fault";
  return steps_text(first_step, last_step) + " ran op by op without a fault";
}

FaultReport diagnose(const DiagnoseRequest& request) {
  // Not RunFolder::open: the process that trains in the folder may be waiting for this one.
  const std::filesystem::path file = request.run / "last.h5";
  if (!path_exists(file)) {
    throw Error(request.run.string() + ": no run folder, it holds no last.h5 to begin at", ExitCode::missing);
  }
  const storage::Checkpoint checkpoint = storage::load_checkpoint(file);
  // As the run is now: a resume may have changed it since the checkpoint.
  const std::filesystem::path resolved = request.run / "resolved.yaml";
  const bool described = path_exists(resolved);
  Experiment experiment = parse_experiment(described ? read_text(resolved) : checkpoint.experiment,
                                           described ? resolved.string() : file.string() + ":experiment");
  experiment.backend = request.backend.empty() ? checkpoint.backend : request.backend;

  training::Session session =
      training::Session::open(experiment, training::load_for(experiment.data, EvaluationPart::validation), nullptr,
                              nullptr, training::origin_of(checkpoint));
  session.restore_state(checkpoint);
  const int64_t done = step_of(checkpoint);
  const int64_t first = request.first_step > 0 ? request.first_step : done + 1;
  const int64_t last = request.last_step > 0 ? request.last_step
                                             : std::min(session.length().end_of_epoch(std::max(first, int64_t{1}) - 1),
                                                        session.total_steps());
  if (first <= done || last > session.total_steps() || last < first - 1) {
    throw Error("the checkpoint " + file.string() + " is of step " + std::to_string(done) + " of " +
                    std::to_string(session.total_steps()) + ": " + steps_text(first, last) +
                    " can't be replayed from there",
                ExitCode::usage);
  }
  return training::find_fault(session, first, last);
}

namespace training {

namespace {

// Counts the ops of a step that are done, to tell which op throws.
class OpByOp {
 public:
  explicit OpByOp(const graph::Graph& graph) : graph_(graph) {}
  std::function<void(const graph::Node&)> observer() {
    return [this](const graph::Node&) { done_ = (done_ + 1) % graph_.nodes().size(); };
  }
  const graph::Node& at() const { return graph_.nodes()[done_]; }
  const graph::Graph& graph() const { return graph_; }

 private:
  const graph::Graph& graph_;
  std::size_t done_ = 0;
};

}  // namespace

FaultReport find_fault(Session& session, int64_t first_step, int64_t last_step) {
  FaultReport report{.first_step = first_step, .last_step = last_step};
  OpByOp training(session.training().graph), evaluation(session.evaluation().graph);
  const OpByOp* running = nullptr;
  try {
    session.train_steps(first_step - 1 - session.step());
    session.backend().synchronize();
    running = &training;
    for (report.step = first_step; report.step <= last_step; ++report.step) {
      session.train_step_observed(training.observer());
    }
    report.step = 0;
    if (session.length().in_epoch(last_step) != 0 && last_step != session.total_steps()) return report;
    running = &evaluation;
    session.evaluate(evaluation.observer());
  } catch (const DeviceLostError& error) {
    report.found = true;
    report.error = error.what();
    if (running == nullptr) return report;
    const graph::Node& node = running->at();
    report.op = execution::text_of(node);
    const execution::Placement placement = session.backend().place(running->graph().signature(node));
    report.plugin = session.backend().chain().at(static_cast<std::size_t>(placement.level));
  }
  return report;
}

std::string fault_text(const std::filesystem::path& program, const DiagnoseRequest& request) {
  std::vector<std::string> arguments = arguments_of(request);
  std::vector<std::string> words;
  std::ranges::transform(arguments, std::back_inserter(words), shell_word);
  const std::string command = "`gpunn " + join(words, " ") + "`";
  if (program.empty()) return "To find the op, run " + command + ".";
  arguments.emplace_back("--json");
  return told(run_process(program, arguments)) + " (" + command + " repeats it.)";
}

}  // namespace training

}  // namespace gpunn
