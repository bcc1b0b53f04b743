#include "cli/parser/complete.hpp"

#include <algorithm>
#include <memory>

#include "catch.hpp"
#include "cli/command.hpp"
#include "temporary_folder.hpp"

using namespace gpunn::cli;
using Words = std::vector<std::string>;

namespace {

Words completed(const Words& line) {
  static const auto program = [] {
    auto all = std::make_unique<CommandLine>();
    add_all(*all);
    return all;
  }();
  Words words;
  for (const Completion& one : complete(*program->app, line)) words.push_back(one.word);
  return words;
}

bool has(const Words& words, const std::string& word) { return std::ranges::find(words, word) != words.end(); }

}  // namespace

TEST_CASE("verbs and options are completed") {
  CHECK(completed({"res"}) == Words{"resume"});
  CHECK(completed({"tr"}) == Words{"train"});
  CHECK(completed({"data", "in"}) == Words{"inspect"});
  CHECK(completed({"train", "x.yaml", "--epo"}) == Words{"--epochs"});
  CHECK_FALSE(has(completed({""}), "complete"));  // hidden
  CHECK(completed({"help", "data", "g"}) == Words{"get"});
  CHECK(completed({"run", "--", "--epo"}).empty());
}

TEST_CASE("keys of --set, and their values") {
  CHECK(completed({"run", "x.yaml", "--set", "optimizer.le"}) == Words{"optimizer.learning_rate="});
  CHECK(has(completed({"run", "x.yaml", "--set", "opt"}), "optimizer="));
  CHECK(completed({"run", "x.yaml", "--set", "optimizer.type=ad"}) ==
        Words{"optimizer.type=adam", "optimizer.type=adamw", "optimizer.type=adagrad"});
  CHECK(completed({"run", "x.yaml", "--set", "optimizer=lio"}) == Words{"optimizer=lion"});
  CHECK(completed({"run", "x.yaml", "--set", "data.shuffle="}) == Words{"data.shuffle=true", "data.shuffle=false"});
  CHECK(completed({"run", "x.yaml", "--set", "data=fash"}) == Words{"data=fashion_mnist"});
  CHECK(completed({"run", "x.yaml", "--set=training.precision=b"}) == Words{"--set=training.precision=bf16"});
  CHECK(completed({"run", "x.yaml", "--set", "optimizer.learning_rate="}).empty());
}

TEST_CASE("values of options and arguments") {
  CHECK(completed({"check", "cpu", "--op", "MATMUL_B"}) == Words{"MATMUL_BIAS_ACTIVATION"});
  CHECK(completed({"check", "cpu", "--suite", "no"}) == Words{"nodevice"});
  CHECK(completed({"check", "cpu", "--precision", "t"}) == Words{"tf32"});
  CHECK(completed({"check", "cpu", "--profile", "inf"}) == Words{"inference"});
  CHECK(completed({"bench", "op", "matmul_b"}) == Words{"matmul_bias_activation"});
  CHECK(completed({"bench", "ker"}) == Words{"kernels"});
  CHECK(completed({"bench", "kernels", "MATM"}).empty());
  CHECK(completed({"bench", "op", "matmul", "8x8x8", "--precision", "fp32,t"}) == Words{"fp32,tf32"});
  CHECK(completed({"bench", "op", "--preset", "ge"}) == Words{"gemm"});
  CHECK(completed({"data", "get", "cifar"}) == Words{"cifar10", "cifar100"});
  CHECK(completed({"data", "get", "mnist", "poi"}) == Words{"points"});
  CHECK(completed({"data", "inspect", "fash"}) == Words{"fashion_mnist"});
  CHECK(completed({"completion", "z"}) == Words{"zsh"});
  CHECK(completed({"help", "layers", "conv2d_"}) == Words{"conv2d_transpose"});
  CHECK(completed({"help", "keys", "optimizer.mo"}) == Words{"optimizer.momentum"});
}

TEST_CASE("experiments' files and folders are completed, and their models' parameters") {
  const gpunn::testing::TemporaryFolder folder;
  const std::string file =
      folder.write("try.yaml", "model: {parameters: {wide: 3}, layers: [linear: {units: $wide}]}\ndata: points\n")
          .string();
  folder.write("notes.txt", "");
  folder.write("more/deep.yaml", "");
  const std::string here = folder.path().string() + "/";
  CHECK(completed({"run", here}) == Words{here + "more/", here + "try.yaml"});
  CHECK(completed({"resume", here}) == Words{here + "more/"});
  CHECK(completed({"data", "inspect", here + "n"}) == Words{here + "notes.txt"});
  CHECK(completed({"run", file, "--set", "model.p"}) == Words{"model.parameters.wide="});
}
