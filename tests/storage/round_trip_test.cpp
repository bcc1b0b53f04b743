#include <gpunn/error.hpp>
#include <gpunn/version.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "checkpoints.hpp"

using namespace storage_test;
using gpunn::storage::load_checkpoint;
using gpunn::storage::save_checkpoint;

namespace {

std::string output_of(const std::string& command) {
  std::string result;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) result.append(part.data(), got);
  ::pclose(pipe);
  return result;
}

}  // namespace

TEST_CASE("a checkpoint of two names is one file until one of them is written again") {
  const Folder folder;
  const fs::path best = folder / "best.h5", last = folder / "last.h5";
  Checkpoint first = small_checkpoint(), second = first;
  second.counters["step"] = first.counters["step"] + 1;
  for (int again = 0; again < 2; ++again) {
    save_checkpoint({best, last}, first);
    CHECK(fs::hard_link_count(best) == 2);
    CHECK(fs::equivalent(best, last));
  }
  save_checkpoint(last, second);
  CHECK(load_checkpoint(best).counters == first.counters);
  CHECK(load_checkpoint(last).counters == second.counters);
  save_checkpoint({best, last}, second);
  CHECK(load_checkpoint(best).counters == second.counters);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);
}

TEST_CASE("a checkpoint comes back as it was saved") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  Checkpoint saved = small_checkpoint();

  SECTION("small") {}
  SECTION("with nothing in it") {
    saved = {};
    saved.created = "x";
    saved.gpunn_version = "y";
  }
  SECTION("every type, ranks 0 to 8, empty tensors") {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8}) {
      const std::string name(gpunn::name_of(dtype));
      for (const Shape& shape : std::vector<Shape>{{}, {1}, {7}, {0}, {3, 0, 2}, {2, 3, 5}, {1, 2, 1, 2, 1, 2, 1, 3}}) {
        saved.state.push_back(tensor(name + gpunn::to_string(shape), dtype, shape));
      }
    }
  }
  SECTION("an experiment of more than an attribute may hold, and a tensor of several chunks") {
    saved.experiment.assign(200'000, 'y');
    saved.parameters.push_back(tensor("large", DType::f32, {1031, 67, 37}));
    saved.parameters.push_back(tensor("long", DType::u8, {9'000'001}));
  }
  SECTION("many counters and tensors, in an order that no alphabet gives") {
    for (int i = 0; i < 300; ++i) {
      saved.counters["counter " + std::to_string(i)] = std::numeric_limits<int64_t>::min() + i;
      saved.parameters.push_back(tensor("t" + std::to_string((i * 7919) % 1000), DType::i32, {2}, 7));
    }
  }
  save_checkpoint(file, saved);
  const Checkpoint loaded = load_checkpoint(file);
  CHECK(same(loaded, saved));
  CHECK(folder.count() == 1);

  SECTION("and is replaced by the next one") {
    const Checkpoint next = small_checkpoint(9);
    save_checkpoint(file, next);
    CHECK(same(load_checkpoint(file), next));
    CHECK(folder.count() == 1);
  }
}

TEST_CASE("a checkpoint without a time of creation and a version gets the present ones") {
  const Folder folder;
  Checkpoint saved = small_checkpoint();
  saved.created.clear();
  saved.gpunn_version.clear();
  save_checkpoint(folder / "last.h5", saved);
  const Checkpoint loaded = load_checkpoint(folder / "last.h5");
  CHECK(loaded.gpunn_version == gpunn::version());
  const std::string& created = loaded.created;
  REQUIRE(created.size() == 20);
  CHECK(created[10] == 'T');
  CHECK(created.back() == 'Z');
}

TEST_CASE("a file is little more than its tensors") {
  const Folder folder;
  Checkpoint saved;
  saved.parameters = {tensor("w", DType::f32, {1000, 500})};
  save_checkpoint(folder / "last.h5", saved);
  CHECK(fs::file_size(folder / "last.h5") < 2'000'000 + 16'384);
}

TEST_CASE("h5dump reads a checkpoint as documented") {
  if (std::system("command -v h5dump > /dev/null 2>&1") != 0) {
    WARN("h5dump is not installed (package hdf5-tools): not tested");
    return;
  }
  const Folder folder;
  Checkpoint saved = small_checkpoint();
  StoredTensor half = tensor("half", DType::f16, {2});
  StoredTensor brain = tensor("brain", DType::bf16, {2});
  const std::array<uint16_t, 2> one_and_minus_two_f16 = {0x3C00, 0xC000};
  const std::array<uint16_t, 2> one_and_minus_two_bf16 = {0x3F80, 0xC000};
  std::memcpy(half.values.data(), one_and_minus_two_f16.data(), 4);
  std::memcpy(brain.values.data(), one_and_minus_two_bf16.data(), 4);
  saved.state = {half, brain};
  const fs::path file = folder / "last.h5";
  save_checkpoint(file, saved);

  const std::string tree = output_of("h5dump -n 1 " + file.string());
  for (const char* part :
       {"/format", "/format_version", "/gpunn_version", "/created", "/backend", "/experiment", "/counters/step",
        "/metrics/best", "/parameters/conv1.weight", "/optimizer/velocity/conv1.weight", "/state/half"}) {
    INFO(tree);
    CHECK_THAT(tree, Contains(part));
  }
  CHECK_THAT(output_of("h5dump -d /state/half " + file.string()), Contains("(0): 1, -2"));
  CHECK_THAT(output_of("h5dump -d /state/brain " + file.string()), Contains("(0): 1, -2"));
  CHECK_THAT(output_of("h5dump -d /experiment " + file.string()), Contains("name: lenet"));
  CHECK_THAT(output_of("h5dump -a /counters/step " + file.string()), Contains("(0): 469"));
  CHECK_THAT(output_of("h5dump -p -H -d /parameters/conv1.weight " + file.string()), Contains("FLETCHER32"));
}

TEST_CASE("what no checkpoint can hold is refused, and the file before it stays") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  const Checkpoint before = small_checkpoint();
  save_checkpoint(file, before);

  Checkpoint bad = small_checkpoint(2);
  std::string expected;
  SECTION("two tensors of one name") {
    bad.parameters.push_back(bad.parameters.front());
    expected = "two tensors named 'conv1.weight'";
  }
  SECTION("a name that is a path") {
    bad.parameters.front().name = "conv1/weight";
    expected = "'conv1/weight'";
  }
  SECTION("no name") {
    bad.counters[""] = 1;
    expected = "a name has 1 to";
  }
  SECTION("a name that means the group itself") {
    bad.optimizer["."] = {};
    expected = "is not '.'";
  }
  SECTION("values that are not the shape's") {
    bad.parameters.front().values.pop_back();
    expected = "its shape needs 600 bytes and it has 599";
  }
  SECTION("a negative dimension") {
    bad.parameters.front().type.shape = {-1};
    expected = "its shape is impossible";
  }
  SECTION("a shape that overflows") {
    bad.parameters.front().type.shape = {int64_t{1} << 62, 4};
    expected = "its shape is impossible";
  }
  SECTION("nine dimensions") {
    bad.parameters.front().type.shape = {6, 1, 5, 5, 1, 1, 1, 1, 1};
    expected = "more than 8 dimensions";
  }
  SECTION("a backend's name without end") {
    bad.backend.assign(10'000, 'x');
    expected = "in 'backend'";
  }
  CHECK_THROWS_WITH(save_checkpoint(file, bad), Contains(expected) && Contains("last.h5"));
  CHECK(same(load_checkpoint(file), before));
  CHECK(folder.count() == 1);
}
