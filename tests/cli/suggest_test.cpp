#include "cli/parser/suggest.hpp"

#include <CLI/CLI.hpp>

#include "catch.hpp"

using namespace gpunn::cli;

namespace {

struct Program {
  Program() {
    app.name("gpunn");
    CLI::App* run = app.add_subcommand("run")->alias("train");
    run->add_option("--backend");
    run->add_flag("--quiet");
    run->add_option("--set");
    CLI::App* plan = app.add_subcommand("plan");
    for (const char* name : {"--aa", "--bb", "--cc", "--dd", "--ee", "--ff", "--gg", "--hh"}) plan->add_flag(name);
    CLI::App* data = app.add_subcommand("data");
    data->add_subcommand("inspect")->add_option("--path");
    data->add_subcommand("list");
  }
  CLI::App app;
};

}  // namespace

TEST_CASE("what is wrong with a line is said in the verb's own terms") {
  const Program program;
  CHECK(explain(program.app, {"rum", "x.yaml"}) == "there is no verb 'rum'; did you mean 'run'?");
  CHECK(explain(program.app, {"fly"}) == "there is no verb 'fly'; there are run, train, plan, data");
  CHECK(explain(program.app, {"run", "x.yaml", "--quite"}) == "'run' has no option '--quite'; did you mean '--quiet'?");
  CHECK(explain(program.app, {"run", "--bckend=cpu"}) == "'run' has no option '--bckend'; did you mean '--backend'?");
  CHECK(explain(program.app, {"data", "inspekt", "mnist"}) == "there is no verb 'inspekt'; did you mean 'inspect'?");
  CHECK(explain(program.app, {"data", "inspect", "mnist", "--pth", "x"}) ==
        "'inspect' has no option '--pth'; did you mean '--path'?");
}

TEST_CASE("verbs and options by the words of the field") {
  const Program program;
  CHECK(explain(program.app, {"trian", "x.yaml"}) == "there is no verb 'trian'; did you mean 'train'?");
  CHECK(explain(program.app, {"fit", "x.yaml"}) == "there is no verb 'fit'; did you mean 'run'?");
  CHECK(explain(program.app, {"x.yaml"}) == "there is no verb 'x.yaml'; did you mean 'gpunn run x.yaml'?");
  CHECK(explain(program.app, {"run", "x.yaml", "--backned", "cpu"}) ==
        "'run' has no option '--backned'; did you mean '--backend'?");
  CHECK(explain(program.app, {"run", "x.yaml", "--lr=0.1"}) ==
        "'run' has no option '--lr'; did you mean '--set optimizer.learning_rate=VALUE'?");
  CHECK(explain(program.app, {"train", "x.yaml", "--batch-size", "3"}) ==
        "'run' has no option '--batch-size'; did you mean '--set data.batch_size=VALUE'?");
  // Without --set it would lead nowhere.
  CHECK(explain(program.app, {"data", "list", "--lr"}) == "'list' has no option '--lr'; there are --help");
}

TEST_CASE("an option that this version does not serve is answered in a sentence") {
  const Program program;
  CHECK_THAT(explain(program.app, {"run", "x.yaml", "--gpus", "4"}),
             Contains("'run' has no option '--gpus'. How many devices train together"));
  CHECK_THAT(explain(program.app, {"run", "x.yaml", "--gpus=4"}), Contains("How many devices train together"));
  CHECK_THAT(explain(program.app, {"run", "x.yaml", "--gpu", "0"}),
             Contains("--backend NAME") && Contains("--set device=N"));
  CHECK_THAT(explain(program.app, {"run", "x.yaml", "--fp16"}), Contains("of that type, what is learnt stays f32"));
}

TEST_CASE("many options are listed by --help") {
  const Program program;
  CHECK(explain(program.app, {"plan", "--xyzzy"}) == "'plan' has no option '--xyzzy'; 'gpunn plan --help' lists them");
}

TEST_CASE("the verb that a line names") {
  const Program program;
  CHECK(full_name(verb_of(program.app, {})) == "gpunn");
  CHECK(full_name(verb_of(program.app, {"train", "x.yaml", "--quiet"})) == "gpunn run");
  CHECK(full_name(verb_of(program.app, {"data", "inspect", "mnist"})) == "gpunn data inspect");
}

TEST_CASE("a line whose words are all known needs no advice") {
  const Program program;
  CHECK(explain(program.app, {}).empty());
  CHECK(explain(program.app, {"run", "x.yaml", "--backend", "cpu"}).empty());
  CHECK(explain(program.app, {"run", "--", "--quite"}).empty());
  CHECK(explain(program.app, {"run", "-1"}).empty());
}
