#include "catch.hpp"
#include "execution/fixture.hpp"

using namespace fixture;
using gpunn::execution::Variables;

TEST_CASE("a variable is made once, zeroed, and keeps its content", "[execution]") {
  Backend backend(registry(), "small_base");
  Variables variables(backend);
  void* const data = variables.create("weights", floats({2, 3}), Storage::parameters);
  CHECK(floats_of(variables.read("weights")) == std::vector<float>(6, 0.0F));
  CHECK(variables.create("weights", floats({2, 3}), Storage::parameters) == data);
  CHECK(variables.data("weights") == data);
  CHECK(variables.type("weights") == floats({2, 3}));

  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  variables.write("weights", bytes_of(values));
  CHECK(variables.create("weights", floats({2, 3}), Storage::parameters) == data);
  CHECK(floats_of(variables.read("weights")) == values);
  CHECK(variables.contains("weights"));
  CHECK_FALSE(variables.contains("bias"));
}

TEST_CASE("bytes are counted by storage", "[execution]") {
  Backend backend(registry(), "small_base");
  {
    Variables variables(backend);
    variables.create("a", floats({10}), Storage::parameters);
    variables.create("b", floats({5}), Storage::parameters);
    variables.create("step", {DType::i64, {}}, Storage::state);
    CHECK(variables.bytes(Storage::parameters) == 60);
    CHECK(variables.bytes(Storage::state) == 8);
    CHECK(variables.bytes(Storage::data) == 0);
    CHECK(backend.allocated_bytes() == 68);
  }
  CHECK(backend.allocated_bytes() == 0);
}

TEST_CASE("wrong names, types and sizes are errors", "[execution]") {
  Backend backend(registry(), "small_base");
  Variables variables(backend);
  CHECK_THROWS_WITH(variables.data("weights"), Contains("no variable 'weights'"));
  variables.create("weights", floats({4}), Storage::parameters);
  CHECK_THROWS_WITH(variables.read("weight"), Contains("did you mean 'weights'?"));
  CHECK_THROWS_WITH(variables.create("weights", floats({5}), Storage::parameters),
                    Contains("is f32[4], and was asked for as f32[5]"));
  CHECK_THROWS_WITH(variables.write("weights", bytes_of({1, 2, 3})), Contains("16 bytes; 12 were given"));
}
