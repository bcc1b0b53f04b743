// The advice on words that other programs use for parts of an experiment or a model.
#include <gpunn/vocabulary.hpp>
#include <gpunn/words.hpp>

#include <algorithm>

#include "catch.hpp"
#include "common/words/tables.hpp"
#include "config/layer_table.hpp"
#include "experiment/schema.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

// The end of the only message about a line of an experiment.
std::string advice_on(const std::string& line) {
  const Texts errors = errors_of(kSound + line + "\n");
  REQUIRE(errors.size() == 1);
  const std::size_t sentence = errors.front().find(". ");
  const std::size_t end = std::min(errors.front().find("; "), sentence);
  return end == std::string::npos ? errors.front() : errors.front().substr(end);
}

std::string layer_advice_on(const std::string& layer) {
  const Texts errors = model_errors_of("layers: [" + layer + "]");
  REQUIRE(errors.size() == 1);
  return errors.front();
}

}  // namespace

TEST_CASE("a key in the wrong section is answered with its full path") {
  CHECK(advice_on("epochs: 3") == "; did you mean 'training.epochs'?");
  CHECK(advice_on("optimizer: {epochs: 3}") == "; did you mean 'training.epochs'?");
  CHECK(advice_on("training: {learning_rate: 3}") == "; did you mean 'optimizer.learning_rate'?");
  CHECK(advice_on("training: {patience: 3}") == "; did you mean 'schedule.patience' or 'early_stopping.patience'?");
  CHECK(advice_on("training: {runs: here}") == "; did you mean 'runs' at the top of the file, outside 'training'?");
  CHECK(advice_on("training: {optimizer: adam}") ==
        "; did you mean 'optimizer' at the top of the file, outside 'training'?");
}

TEST_CASE("keys by the words of the field") {
  CHECK(advice_on("lr: 0.1") == "; did you mean 'optimizer.learning_rate'?");
  CHECK(advice_on("optimizer: {lr: 0.1}") == "; did you mean 'learning_rate'?");
  CHECK(advice_on("training: {lr: 0.1}") == "; did you mean 'optimizer.learning_rate'?");
  CHECK(advice_on("batch: 32") == "; did you mean 'data.batch_size'?");
  CHECK(advice_on("training: {batch_size: 32}") == "; did you mean 'data.batch_size'?");
  CHECK(advice_on("epoch: 3") == "; did you mean 'training.epochs'?");
  CHECK(advice_on("scheduler: cosine") == "; did you mean 'schedule'?");
  CHECK(advice_on("training: {grad_clip: 1}") == "; did you mean 'optimizer.clip_norm'?");
  CHECK(advice_on("schedule: {warmup: 1}") == "; did you mean 'warmup_epochs'?");
  CHECK(advice_on("optimizer: {groups: [{match: a, lr: 1}]}") == "; did you mean 'learning_rate_factor'?");
  CHECK(errors_of(kSound, {{"lr", "0.1"}}) ==
        Texts{"--set lr: unknown key 'lr' in the experiment; did you mean 'optimizer.learning_rate'?"});
}

TEST_CASE("many keys are listed by a command") {
  CHECK(advice_on("schedule: {xyzzy: 1}") == "; 'gpunn help keys schedule' lists them");
  CHECK(advice_on("xyzzy: 1") == "; 'gpunn help keys' lists them");
  CHECK(errors_of(kSound + "schedule: [1]\n").front() ==
        "e.yaml:3:11: schedule: expected a map of keys, which 'gpunn help keys schedule' lists, found a list");
}

TEST_CASE("the device is chosen by two keys") {
  CHECK_THAT(advice_on("training: {device: 0}"),
             Contains("'backend: NAME'") && Contains("'device: N'") && !Contains("did you mean"));
  CHECK_THAT(advice_on("accelerator: gpu"), Contains("'backend: NAME'"));
  CHECK_THAT(errors_of(kSound + "device: cuda\n").front(),
             Contains("device: expected an integer of at least 0 and at most 1023, found 'cuda'. ") &&
                 Contains("'backend: NAME'"));
  // Of what is no device nothing more can be said.
  CHECK(errors_of(kSound + "device: xyzzy\n") ==
        Texts{"e.yaml:3:9: device: expected an integer of at least 0 and at most 1023, found 'xyzzy'"});
  CHECK(errors_of(kSound + "training: {epochs: gpu}\n") ==
        Texts{"e.yaml:3:20: training.epochs: expected an integer of at least 1 and at most 1000000, found 'gpu'"});
}

TEST_CASE("layers and their parameters by the words of the field") {
  for (const auto& [theirs, ours] : std::vector<std::pair<std::string, std::string>>{{"dense", "linear"},
                                                                                     {"fc", "linear"},
                                                                                     {"conv", "conv2d"},
                                                                                     {"batchnorm", "batch_norm"},
                                                                                     {"bn", "batch_norm"},
                                                                                     {"dropout2d", "dropout"},
                                                                                     {"maxpool", "max_pool"},
                                                                                     {"MaxPool2d", "max_pool"},
                                                                                     {"swish", "silu"},
                                                                                     {"cat", "concat"},
                                                                                     {"Conv2D", "conv2d"},
                                                                                     {"deconv", "conv2d_transpose"},
                                                                                     {"gap", "global_avg_pool"},
                                                                                     {"LeakyReLU", "leaky_relu"}}) {
    CAPTURE(theirs);
    CHECK_THAT(layer_advice_on(theirs), Contains("unknown layer '" + theirs + "'; did you mean '" + ours + "'?"));
  }
  CHECK_THAT(layer_advice_on("xyzzy"), Contains("unknown layer 'xyzzy'; 'gpunn help layers' lists all"));
  CHECK_THAT(layer_advice_on("linear: {units: 2, out_features: 3}"), Contains("; did you mean 'units'?"));
  CHECK_THAT(layer_advice_on("conv2d: {filters: 2, kernel: 3, kernel_size: 3}"), Contains("; did you mean 'kernel'?"));
  CHECK_THAT(layer_advice_on("max_pool: {window: 2, kernel_size: 3}"), Contains("; did you mean 'window'?"));
  CHECK_THAT(layer_advice_on("linear: {units: 2, init: he_normal}"), Contains("; did you mean 'kaiming_normal'?"));
}

TEST_CASE("values by the words of the field") {
  const auto advice_on_value = [](const std::string& line) {
    const Texts errors = errors_of(kSound + line + "\n");
    REQUIRE(errors.size() == 1);
    return errors.front().substr(errors.front().find(", found '"));
  };
  CHECK(advice_on_value("optimizer: AdamW") == ", found 'AdamW'; did you mean 'adamw'?");
  CHECK(advice_on_value("schedule: CosineAnnealingLR") == ", found 'CosineAnnealingLR'; did you mean 'cosine'?");
  CHECK(advice_on_value("schedule: plateau") == ", found 'plateau'; did you mean 'reduce_on_plateau'?");
  CHECK(advice_on_value("loss: nll_loss") == ", found 'nll_loss'; did you mean 'cross_entropy'?");
  CHECK(advice_on_value("loss: bce") == ", found 'bce'; did you mean 'binary_cross_entropy'?");
  CHECK(advice_on_value("checkpoint: {monitor: val_acc}") == ", found 'val_acc'; did you mean 'accuracy'?");
  CHECK(advice_on_value("training: {precision: float32}") == ", found 'float32'; did you mean 'fp32'?");
  CHECK_THAT(errors_of("model: {layers: [relu]}\ndata: imagenet\n").front(),
             Contains("found 'imagenet'; did you mean 'image_folder'?"));
}

TEST_CASE("what this version does not serve is said where it is asked for") {
  for (const auto& [line, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"problem_type: regression", "'task: regression'"},
           {"task: regressor", "'task: regression'"},
           {"task: multilabel", "'multi_label'"},
           {"task: pose", "not as masks or points"},
           {"loss: mse", "did you mean 'mean_squared_error'?"},
           {"training: {devices: 2}", "How many devices train together"},
           {"data_parallel: true", "How many devices train together"},
           {"device: [0, 1]", "How many devices train together"},
           {"gpus: 16", "How many devices train together"},
           {"backend: [cpu, other]", "'gpunn race'"},
           {"training: {precision: fp16}", "of that type, what is learnt stays f32"},
           {"training: {precision: 16}", "of that type, what is learnt stays f32"},
           {"training: {amp: true}", "of that type, what is learnt stays f32"},
           {"wandb: true", "TensorBoard"},
           {"model: net.pth", "safetensors"}}) {
    CAPTURE(line);
    const bool model = line.starts_with("model");
    const Texts errors = errors_of(model ? line + "\ndata: points\n" : kSound + line + "\n");
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors.front(), Contains(sentence));
  }
  CHECK_THAT(layer_advice_on("token_embedding: {width: 3}"), Contains("did you mean 'embedding'?"));
  CHECK_THAT(layer_advice_on("simple_rnn: {units: 3}"), Contains("did you mean 'rnn'?"));
  CHECK_THAT(layer_advice_on("transformer_encoder: {}"), Contains("models/vit.yaml has one"));
  CHECK_THAT(layer_advice_on("self_attention: {heads: 2}"), Contains("did you mean 'multi_head_attention'?"));
  CHECK_THAT(errors_of("model: {layers: [relu]}\ndata: imdb\n").front(), Contains("not on text, audio or video"));
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(load_experiment(folder.write("m.onnx", "x")),
                    Contains("expected an experiment (.yaml)") && Contains("is a trained model"));
}

TEST_CASE("no word of ours is taken for another") {
  for (const config::Key& key : config::schema()) {
    const std::vector<std::string> near = nearest_keys(key.section(), key.name());
    REQUIRE_FALSE(near.empty());
    CHECK(near.front() == key.name());
    for (const std::string& choice : key.choices) CHECK(best_matches(choice, key.choices) == Texts{choice});
  }
  for (const config::LayerType& type : config::layer_table()) {
    CHECK(best_matches(type.name, config::layer_type_names()) == Texts{type.name});
    CHECK(explanation(type.name).empty());
  }
}
