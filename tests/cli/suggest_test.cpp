#include "cli/suggest.hpp"

#include <CLI/CLI.hpp>

#include "catch.hpp"

using namespace gpunn::cli;

namespace {

struct Program {
  Program() {
    app.name("gpunn");
    CLI::App* run = app.add_subcommand("run");
    run->add_option("--backend");
    run->add_flag("--quiet");
    CLI::App* data = app.add_subcommand("data");
    data->add_subcommand("inspect")->add_option("--path");
    data->add_subcommand("list");
  }
  CLI::App app;
};

}  // namespace

TEST_CASE("the nearest word, or none") {
  const std::vector<std::string> words = {"--backend", "--quiet", "--seed"};
  CHECK(nearest("--bakend", words) == "--backend");
  CHECK(nearest("--queit", words) == "--quiet");
  CHECK(nearest("--colour", words).empty());
  CHECK(nearest(std::string(1000, 'x'), words).empty());
}

TEST_CASE("what is wrong with a line is said in the verb's own terms") {
  const Program program;
  CHECK(explain(program.app, {"rum", "x.yaml"}) == "there is no verb 'rum'; did you mean 'run'?");
  CHECK(explain(program.app, {"fly"}) == "there is no verb 'fly'; there are run, data");
  CHECK(explain(program.app, {"run", "x.yaml", "--quite"}) == "'run' has no option '--quite'; did you mean '--quiet'?");
  CHECK(explain(program.app, {"run", "--bckend=cpu"}) == "'run' has no option '--bckend'; did you mean '--backend'?");
  CHECK(explain(program.app, {"data", "inspekt", "mnist"}) == "there is no verb 'inspekt'; did you mean 'inspect'?");
  CHECK(explain(program.app, {"data", "inspect", "mnist", "--pth", "x"}) ==
        "'inspect' has no option '--pth'; did you mean '--path'?");
}

TEST_CASE("a line whose words are all known needs no advice") {
  const Program program;
  CHECK(explain(program.app, {}).empty());
  CHECK(explain(program.app, {"run", "x.yaml", "--backend", "cpu"}).empty());
  CHECK(explain(program.app, {"run", "--", "--quite"}).empty());
  CHECK(explain(program.app, {"run", "-1"}).empty());
}
