#include <gpunn/words.hpp>

#include <set>

#include "catch.hpp"
#include "common/words/tables.hpp"

using namespace gpunn;
using Words = std::vector<std::string>;

TEST_CASE("a typing slip finds its word") {
  const std::vector<std::string> keys = {"learning_rate", "momentum", "nesterov", "weight_decay"};
  CHECK(best_matches("learning_rat", keys) == Words{"learning_rate"});
  CHECK(best_matches("laerning_rate", keys).front() == "learning_rate");  // a swap
  CHECK(best_matches("Learning-Rate", keys).front() == "learning_rate");  // case and dashes
  CHECK(best_matches("momentun", keys).front() == "momentum");
  CHECK(best_matches("banana", keys).empty());
  CHECK(best_matches("", keys).empty());
  CHECK(best_matches(std::string(100000, 'a'), keys).empty());
}

TEST_CASE("of two slips the smaller is meant") {
  CHECK(best_matches("conv3d", {"conv1dx", "conv2d", "linear"}) == Words{"conv2d"});
}

TEST_CASE("a suggestion names one word, or all") {
  CHECK(did_you_mean_or_list("relv", {"relu", "linear"}) == "; did you mean 'relu'?");
  CHECK(did_you_mean_or_list("xyz", {"relu", "linear"}) == "; known: relu, linear");
  CHECK(did_you_mean_or_list("xyz", {}).empty());
}

TEST_CASE("short words need to be nearly right") {
  CHECK(best_matches("lr", {"to", "lb"}).empty());
  CHECK(best_matches("ad", {"add"}).front() == "add");
}

TEST_CASE("a word of the field finds ours, where it is possible") {
  CHECK(best_matches("lr", {"momentum", "learning_rate"}) == Words{"learning_rate"});
  CHECK(best_matches("lr", {"momentum", "betas"}).empty());
  CHECK(best_matches("Dense", {"dropout", "linear", "reshape"}) == Words{"linear"});
  CHECK(best_matches("ReduceLROnPlateau", {"step", "reduce_on_plateau"}) == Words{"reduce_on_plateau"});
  CHECK(best_matches("gemm", {"ADD", "MATMUL"}) == Words{"MATMUL"});
  // One word, two meanings: what stands first in the table wins where both are possible.
  CHECK(best_matches("l2", {"weight_decay", "l1"}) == Words{"weight_decay"});
  CHECK(best_matches("l2", {"cross_entropy", "mean_squared_error"}) == Words{"mean_squared_error"});
}

TEST_CASE("case and underscores are no difference") {
  CHECK(best_matches("BatchNorm", {"layer_norm", "batch_norm"}) == Words{"batch_norm"});
  CHECK(best_matches("max-pool", {"avg_pool", "max_pool"}) == Words{"max_pool"});
}

TEST_CASE("a part of a word finds it, or several") {
  CHECK(best_matches("batch", {"seed", "batch_size", "eval_batch_size"}) == Words{"batch_size"});  // a synonym
  CHECK(best_matches("warm", {"type", "warmup_epochs", "warmup_steps"}) == Words{"warmup_steps", "warmup_epochs"});
  CHECK(best_matches("pool", {"relu", "avg_pool", "max_pool", "global_avg_pool", "global_max_pool"}) ==
        Words{"avg_pool", "max_pool", "global_avg_pool"});
  CHECK(best_matches("cifra", {"mnist", "cifar10", "cifar100"}) == Words{"cifar10", "cifar100"});
  CHECK(best_matches("linear_layer", {"relu", "linear"}) == Words{"linear"});
  CHECK(did_you_mean("pool", {"avg_pool", "max_pool"}) == "; did you mean 'avg_pool' or 'max_pool'?");
}

TEST_CASE("advice says in a sentence what this version does not serve") {
  CHECK(advice("relv", {"relu", "linear"}) == "; did you mean 'relu'?");
  CHECK_THAT(advice("transformer", {"linear", "relu"}), Contains(". A transformer's block is multi_head_attention"));
  CHECK_THAT(advice("devices", {"device"}), Contains(". How many devices train together"));
  CHECK_THAT(advice("mse", {"cross_entropy", "mean_squared_error"}), Contains("; did you mean 'mean_squared_error'?"));
  CHECK_THAT(std::string(explanation(".onnx")), Contains("is a trained model"));
  CHECK(explanation("relu").empty());
  CHECK(explanation("").empty());
}

TEST_CASE("many candidates are listed by a command") {
  Words many;
  for (int i = 0; i < 40; ++i) many.push_back("word" + std::to_string(i) + "x");
  CHECK(advice_or_list("banana", many, "'gpunn help words'") == "; 'gpunn help words' lists all 40");
  CHECK(advice_or_list("banana", {"a1", "b2"}, "'gpunn help words'") == "; known: a1, b2");
  CHECK(advice_or_list("word7y", many, "'gpunn help words'") == "; did you mean 'word7x'?");
}

TEST_CASE("the tables hold together") {
  std::set<std::string> explained;
  for (const auto& row : words::explanations()) {
    CAPTURE(row.sentence);
    CHECK(row.sentence.ends_with("."));
    std::string_view rest = row.words;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      // The sentence of a later row would never be seen.
      CHECK(explanation(rest.substr(0, end)) == row.sentence);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  for (const auto& row : words::synonyms()) {
    CAPTURE(row.ours);
    CHECK_FALSE(words::lists(row.theirs, row.ours));
  }
}
