// Profiles: the ops that must run, and that they name all ops of training and inference programs.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <filesystem>

#include "check_support.hpp"
#include "compiler/decompose.hpp"
#include "conformance/profiles.hpp"
#include "nn/model.hpp"
#include "ops/case.hpp"
#include "program/layout.hpp"
#include "program/programs.hpp"

using namespace gpunn;
using namespace gpunn::conformance;
using namespace gpunn::ops;
using namespace gpunn::testing;
using namespace gpunn::ops;

namespace {

// Checks that demands() holds for each op of a step program once its composite ops are decomposed.
void require_all(const std::string& name, graph::Graph program) {
  const Profile& profile = find_profile(name);
  // No composite op is served, so that all of them are decomposed.
  compiler::decompose_unserved(
      program, [](const graph::OpSignature& signature) { return ops::op_info(signature.op).composite ? -1 : 0; });
  CHECK(program.nodes().size() > 5);
  for (const graph::Node& node : program.nodes()) {
    const graph::OpSignature signature = program.signature(node);
    const TensorType& type = (signature.inputs.empty() ? signature.outputs : signature.inputs).front();
    INFO(name << ": " << ops::op_info(node.op).name << " " << to_string(type));
    CHECK(demands(profile, ops::op_info(node.op).name, name_of(type.dtype)));
  }
}

struct Setting {
  const char* loss;
  const char* optimizer;
};

}  // namespace

TEST_CASE("profiles hold what the shipped models come to") {
  const Setting settings[] = {
      {"cross_entropy", "{type: sgd, learning_rate: 0.1, momentum: 0.9}"},
      {"cross_entropy", "{type: adamw, learning_rate: 0.1}"},
      {"mean_squared_error", "{type: rmsprop, learning_rate: 0.1}"},
      {"cross_entropy", "adagrad"},
      {"cross_entropy", "lion"},
      {"cross_entropy", "lars"},
      {"cross_entropy", "{type: muon, clip_value: 1, clip_norm: 1, l1: 0.1}\ntraining: {ema: 0.9, accumulate: 2}"}};
  const Schema schema;
  for (const Setting& setting : settings) {
    for (const DType data : {DType::u8, DType::f32}) {
      const std::string text = std::string("model:\n  layers:\n") +
                               "    - conv2d: {name: a, filters: 4, kernel: 3, padding: same, activation: relu}\n"
                               "    - conv2d: {name: b, filters: 4, kernel: 3, padding: same}\n"
                               "    - batch_norm\n    - layer_norm\n    - local_response_norm: {name: n}\n"
                               "    - add: {from: [a, n]}\n    - relu\n"
                               "    - max_pool: {name: m, window: 2}\n"
                               "    - conv2d_transpose: {name: t, filters: 4, kernel: 2, stride: 2}\n"
                               "    - upsample: {name: u, factor: 2, from: m}\n    - concat: {from: [t, u]}\n"
                               "    - pad: {padding: 1}\n    - pixel_shuffle: {factor: 2}\n"
                               "    - avg_pool: {window: 4}\n    - flatten\n"
                               "    - dropout: {p: 0.2}\n    - linear: {units: 10}\n" +
                               (std::string(setting.loss) == "cross_entropy" ? "" : "    - softmax\n") +
                               "data: {dataset: digits, batch_size: 8}\naugmentation: {crop: 2, flip: 0.5, rotate: 5, "
                               "contrast: 0.1, erase: 3, mixup: 0.2}\nloss: " +
                               setting.loss + "\noptimizer: " + setting.optimizer + "\n";
      const Experiment experiment = parse_experiment(text, "profile_test");
      const TensorType samples{data, {64, 1, 28, 28}};
      const std::vector<nn::Parameter> parameters = nn::model_parameters(experiment.model, {1, 28, 28});
      const training::ParameterLayout layout =
          training::lay_out(parameters, training::update_rules(parameters, experiment), 256);
      training::SplitType split;
      split.name = "train";
      split.samples = samples;
      split.fields = {{.name = kLabelField, .row = {DType::i32, {}}}};
      const training::ParameterLayout buffers =
          training::lay_out(nn::model_buffers(experiment.model, {1, 28, 28}), 256);
      const training::ProgramContext context{experiment, layout, schema, 10, 100, buffers};
      require_all("train-cnn", training::training_program(context, split));
      require_all("inference", training::evaluation_program(context, split, 8));
      require_all("inference", training::inspection_program(context, split, 8));
      require_all("train-cnn", training::evaluation_program(context, split, 8));
    }
  }
}

TEST_CASE("within a profile a lack is a failure, outside it a skip") {
  CheckOptions options = options_for("honest");
  options.suites = {"ops"};
  options.ops = {"MATMUL", "SOFTMAX", "RELU_BACKWARD", "RANDOM_NORMAL", "CONV2D_BIAS_ACTIVATION"};
  const auto failed = [&options](const std::string& profile) {
    options.profile = profile;
    return names(failures(check(options), "ops"));
  };
  CHECK(failed("").empty());
  CHECK(failed("inference") == std::set<std::string>{"SOFTMAX"});
  CHECK(failed("train-cnn") == std::set<std::string>{"SOFTMAX", "RELU_BACKWARD"});
  CHECK(failed("all") == std::set<std::string>{"SOFTMAX", "RELU_BACKWARD", "RANDOM_NORMAL"});
  CHECK_THAT(failures(check(options), "ops").at("SOFTMAX"), Contains("required by profile 'all'"));
  CHECK_THROWS_WITH(failed("train_cnn"), Contains("no profile 'train_cnn'") && Contains("'train-cnn'"));
}

TEST_CASE("a profile names types too") {
  const std::string name = "train-cnn";  // a temporary would have GCC 13 warn of a dangling reference
  const Profile& train = find_profile(name);
  CHECK(demands(train, "COPY", "f32"));
  CHECK_FALSE(demands(train, "COPY", "i64"));
  CHECK(demands(find_profile("all"), "COPY", "i64"));
  CHECK_FALSE(demands(find_profile("all"), "CONV2D_BIAS_ACTIVATION", "f32"));
  CHECK(demands(train, "stream_wrap", ""));
  // Every type named is one that there are cases of.
  std::set<std::pair<std::string, std::string>> known;
  for (const Case& test : all_cases()) {
    const graph::OpSignature& signature = test.signature;
    const TensorType& type = (signature.inputs.empty() ? signature.outputs : signature.inputs).front();
    known.emplace(ops::op_info(signature.op).name, name_of(type.dtype));
  }
  for (const Profile& profile : profiles()) {
    for (const RequiredOp& required : profile.ops) {
      for (const DType type : required.types) {
        INFO(profile.name << " " << ops::op_info(required.op).name << " " << name_of(type));
        CHECK(known.count({std::string(ops::op_info(required.op).name), std::string(name_of(type))}) == 1);
      }
    }
  }
}

TEST_CASE("every op has a case for the stream, for the graph and for timing") {
  for (const auto& cases : {one_case_each(), typical_cases()}) {
    std::set<int32_t> seen;
    for (const Case& test : cases) CHECK(seen.insert(test.signature.op).second);
    for (const ops::OpInfo* info : ops::all_ops()) {
      INFO(info->name);
      CHECK(seen.count(info->id) == 1);
    }
  }
}
