// A training that starts from another's weights: the tensors that it takes or leaves, and the messages.
#include "runs/transfer.hpp"

#include <gpunn/error.hpp>
#include <gpunn/plan.hpp>

#include <cstring>
#include <fstream>
#include <functional>

#include "catch.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "session/session.hpp"
#include "storage/safetensors.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

class Messages : public TrainingListener {
 public:
  void on_message(const std::string& message) override { text += message + "\n"; }
  std::string text;
};

std::vector<std::byte> values_of(const std::vector<storage::StoredTensor>& tensors, const std::string& name) {
  for (const storage::StoredTensor& tensor : tensors) {
    if (tensor.name == name) return tensor.values;
  }
  throw std::runtime_error("no tensor " + name);
}

std::vector<storage::StoredTensor> parameters_of(training::Session& session) {
  storage::Checkpoint checkpoint;
  session.save_state(checkpoint);
  return checkpoint.parameters;
}

// What a session begins with.
std::vector<storage::StoredTensor> start(const Experiment& experiment, std::string* said = nullptr) {
  training::Session session = training::Session::open(experiment);
  const auto found = training::find_start(experiment, training::model_samples(session.dataset()));
  if (found) session.initialise_from(*found);
  if (said != nullptr) *said = found->report.text();
  return parameters_of(session);
}

}  // namespace

TEST_CASE("a training starts from another's weights, but for the layer that differs") {
  const TemporaryFolder folder;
  const RunResult first = train(small_lenet(folder.path(), {{"training.max_steps", "5"}}),
                                {.listener = nullptr, .stop = nullptr, .run_folder = folder.path() / "first"});
  const auto trained = storage::load_checkpoint(first.run / "best.h5").parameters;
  const std::string form = GENERATE("folder", "checkpoint", "safetensors");
  std::filesystem::path from = first.run;
  if (form == "checkpoint") from /= "best.h5";
  if (form == "safetensors") {
    from /= "weights.safetensors";
    storage::save_safetensors(from, {trained, {}});
  }
  const Override shallow{"model",
                         "{layers: [conv2d: {name: conv1, filters: 6, kernel: 5, padding: 2}, relu, max_pool: {window: "
                         "2}, flatten, linear: {name: output, units: 10}]}"};
  const std::vector<Override> settings{
      shallow, {"init_from", from.string()}, {"training.max_steps", "2"}, {"training.seed", "7"}};
  const Experiment experiment = small_lenet(folder.path(), settings);
  std::string said;
  const auto begun = start(experiment, &said);
  const auto fresh = start(small_lenet(folder.path(), {shallow, {"training.seed", "7"}}));
  for (const std::string name : {"conv1.weight", "conv1.bias", "output.bias"}) {
    CHECK(values_of(begun, name) == values_of(trained, name));
    CHECK(values_of(begun, name) != values_of(fresh, name));
  }
  CHECK(values_of(begun, "output.weight") == values_of(fresh, "output.weight"));
  CHECK_THAT(said, Contains("3 of 4 tensors"));
  CHECK_THAT(said, Contains("output.weight f32[10, 1176] (there f32[10, 84])"));
  CHECK_THAT(said, Contains("not in the model: conv2.bias, conv2.weight"));

  // The file is for the start alone: the run goes on without it.
  Messages messages;
  const RunResult second =
      train(experiment, {.listener = &messages, .stop = nullptr, .run_folder = folder.path() / ("second_" + form)});
  CHECK_THAT(messages.text, Contains("starts from"));
  CHECK(resume(second.run, {{"init_from", (folder / "gone").string()}, {"training.max_steps", "4"}}).epochs.size() > 0);
}

TEST_CASE("a table of names says what another's tensors are called") {
  const TemporaryFolder folder;
  std::vector<storage::StoredTensor> tensors = start(small_lenet(folder.path(), {{"training.seed", "3"}}));
  for (storage::StoredTensor& tensor : tensors) {
    if (tensor.name.starts_with("conv")) tensor.name = "features." + tensor.name;
  }
  storage::save_safetensors(folder / "w.safetensors", {tensors, {}});
  folder.write("names.yaml", "features.conv*.*: conv*.*\n");
  const Experiment experiment = small_lenet(folder.path(), {{"init_from.file", (folder / "w.safetensors").string()},
                                                            {"init_from.names", (folder / "names.yaml").string()}});
  std::string said;
  const auto begun = start(experiment, &said);
  CHECK_THAT(said, Contains("10 of 10 tensors"));
  CHECK(values_of(begun, "conv2.weight") == values_of(tensors, "features.conv2.weight"));

  folder.write("names.yaml", "features.conv*.*: conv1.weight\n");
  CHECK_THROWS_WITH(start(experiment), Contains("are both called 'conv1.weight'"));
}

TEST_CASE("if none of the weights fits, the error shows both sides") {
  const TemporaryFolder folder;
  storage::StoredTensor other;
  other.name = "fc.weight";
  other.type = {DType::f32, {1}};
  other.values.resize(4);
  storage::save_safetensors(folder / "w.safetensors", {{other}, {}});
  const Experiment experiment = small_lenet(folder.path(), {{"init_from", (folder / "w.safetensors").string()}});
  try {
    start(experiment);
    FAIL("started");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    CHECK_THAT(error.what(),
               Contains("in the file: fc.weight") && Contains("in the model: conv1.weight f32[6, 1, 5, 5]"));
  }
  CHECK_THROWS_AS(start(small_lenet(folder.path(), {{"init_from", "/no/such/run"}})), Error);
}

TEST_CASE("a plan and a run check where they start from before a device is touched") {
  const TemporaryFolder folder;
  const auto from = [&](const std::string& file) {
    return small_lenet(folder.path(), {{"init_from.file", file}, {"backend", "no_such_backend"}});
  };
  const auto both_say = [](const Experiment& experiment, ExitCode code, const std::string& text) {
    const std::function<void()> plans = [&] { plan(experiment); }, trains = [&] { train(experiment); };
    for (const auto& work : {plans, trains}) {
      try {
        work();
        FAIL("it went on");
      } catch (const Error& error) {
        CHECK(error.code() == code);
        CHECK_THAT(error.what(), Contains(text));
      }
    }
  };
  both_say(from("/no/such/file.safetensors"), ExitCode::missing, "/no/such/file.safetensors");
  storage::StoredTensor other;
  other.name = "conv1.weight";
  other.type = {DType::f32, {1}};
  other.values.resize(4);
  storage::save_safetensors(folder / "w.safetensors", {{other}, {}});
  both_say(from((folder / "w.safetensors").string()), ExitCode::usage, "conv1.weight f32[6, 1, 5, 5] (there f32[1])");

  const auto trained = start(small_lenet(folder.path()));
  storage::save_safetensors(folder / "sound.safetensors", {trained, {}});
  const PlanReport report =
      plan(small_lenet(folder.path(), {{"init_from.file", (folder / "sound.safetensors").string()}}));
  CHECK_THAT(report.start, Contains("sound.safetensors: 10 of 10 tensors"));
}

TEST_CASE("a file of torch.save is answered with the line that converts it") {
  const TemporaryFolder folder;
  const auto [name, head] = GENERATE(table<std::string, std::string>({{"net.pth", "PK\3\4"},
                                                                      {"net.pt", "\x80\x02}q"},
                                                                      {"pytorch_model.bin", "\x80\x04\x95\x1a"},
                                                                      {"odd.safetensors", "PK\3\4"}}));
  const std::filesystem::path file = folder.write(name, head + "archive/data.pkl");
  try {
    start(small_lenet(folder.path(), {{"init_from", file.string()}}));
    FAIL("started");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    CHECK_THAT(error.what(), Contains("python3 -c") && Contains("weights_only=True") && Contains("save_file(") &&
                                 Contains("'state_dict'") && Contains("'" + file.string() + "'") &&
                                 Contains("--set init_from.file='" + file.parent_path().string()));
  }
}
