// The library for C: its results, and its answers to wrong calls.
#include <gpunn/gpunn.h>
#include <gpunn/network.hpp>
#include <gpunn/version.hpp>

#include <array>
#include <thread>

#include "catch.hpp"
#include "inference/context.hpp"
#include "inference/models.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

std::string trained(const std::filesystem::path& folder) {
  return train(small_mlp(folder, {{"training.epochs", "1"}})).run.string();
}

gpunn_model_options options_of(int64_t max_batch) {
  gpunn_model_options options;
  REQUIRE(gpunn_model_options_init(&options, sizeof(options)) == GPUNN_DONE);
  options.backend = "cpu";
  options.threads = 1;
  options.max_batch = max_batch;
  return options;
}

gpunn_model* loaded(const std::string& run, int64_t max_batch = 4) {
  const gpunn_model_options options = options_of(max_batch);
  gpunn_model* model = nullptr;
  REQUIRE(gpunn_model_load(run.c_str(), &options, &model) == GPUNN_DONE);
  REQUIRE(model != nullptr);
  return model;
}

std::string text_of_last() { return gpunn_last_error(); }

}  // namespace

TEST_CASE("the C face gives what the C++ one gives") {
  const TemporaryFolder folder;
  const std::string run = trained(folder.path());
  const Model same = Model::load(run, {.backend = "cpu", .threads = 1, .max_batch = 4});
  gpunn_model* const model = loaded(run);

  gpunn_model_info info{};
  info.struct_size = sizeof(info);
  REQUIRE(gpunn_model_describe(model, &info) == GPUNN_DONE);
  CHECK(std::string(info.name) == "small_mlp");
  CHECK(std::string(info.task) == "classification");
  CHECK(std::string(info.backend) == "cpu");
  CHECK(info.n_inputs == 1);
  CHECK(info.n_outputs == 2);
  CHECK(info.n_classes == 10);
  CHECK(info.max_batch == 4);
  gpunn_model_tensor input{}, output{};
  input.struct_size = output.struct_size = sizeof(input);
  REQUIRE(gpunn_model_input(model, 0, &input) == GPUNN_DONE);
  CHECK(std::string(input.name) == "image");
  CHECK(input.dtype == GPUNN_U8);
  CHECK(input.rank == 3);
  CHECK(input.dim[1] == 28);
  CHECK(input.row_bytes == 784);
  REQUIRE(gpunn_model_output(model, 1, &output) == GPUNN_DONE);
  CHECK(std::string(output.name) == "probabilities");
  CHECK(output.row_bytes == 40);
  const char* name = nullptr;
  REQUIRE(gpunn_model_class(model, 9, &name) == GPUNN_DONE);
  CHECK(std::string(name) == "9");
  CHECK(std::string(gpunn_version()) == version());

  Samples samples = Samples(same, 3).draw(5);
  const std::vector<float> expected = logits_of(same, samples);
  std::vector<float> logits(30), probabilities(30);
  const gpunn_array in = {nullptr, samples.bytes.data(), samples.bytes.size(), GPUNN_U8, 0};
  const std::array<gpunn_array, 2> out = {
      {{"probabilities", probabilities.data(), 120, GPUNN_F32, 0}, {"logits", logits.data(), 120, GPUNN_F32, 0}}};
  REQUIRE(gpunn_model_run(model, 3, &in, 1, out.data(), 2) == GPUNN_DONE);
  CHECK(logits == expected);

  std::array<gpunn_class_probability, 6> found{};
  REQUIRE(gpunn_model_classify(model, 3, &in, 2, found.data()) == GPUNN_DONE);
  for (std::size_t row = 0; row < 3; ++row) {
    const auto begin = probabilities.begin() + static_cast<std::ptrdiff_t>(row) * 10;
    const auto best = std::max_element(begin, begin + 10);
    CHECK(found[row * 2].index == best - begin);
    CHECK(found[row * 2].probability == static_cast<double>(*best));
    CHECK(found[row * 2].probability >= found[row * 2 + 1].probability);
    CHECK(std::string(found[row * 2].name) == std::to_string(best - begin));
  }

  folder.write("dark.pgm", "P5 28 28 255\n" + std::string(784, '\0'));
  std::vector<uint8_t> pixels(784, 7);
  REQUIRE(gpunn_model_read_image(model, (folder / "dark.pgm").c_str(), pixels.data(), 784) == GPUNN_DONE);
  CHECK(pixels == std::vector<uint8_t>(784, 0));
  CHECK(gpunn_model_destroy(model) == GPUNN_DONE);
}

TEST_CASE("callers of the C face that do wrong are told, and nothing is written") {
  const TemporaryFolder folder;
  const std::string run = trained(folder.path());
  gpunn_model* model = loaded(run, 2);
  std::vector<uint8_t> image(784 * 3);
  std::vector<float> logits(30, -1.0F);
  const gpunn_array in = {"image", image.data(), 784, GPUNN_U8, 0};
  const gpunn_array out = {"logits", logits.data(), 40, GPUNN_F32, 0};
  const auto wrong = [&](gpunn_result result, const std::string& text) {
    CHECK(result == GPUNN_WRONG_USE);
    CHECK_THAT(text_of_last(), Contains(text));
  };

  SECTION("null") {
    gpunn_model_options options = options_of(1);
    wrong(gpunn_model_load(nullptr, nullptr, &model), "the path is NULL");
    wrong(gpunn_model_load(run.c_str(), nullptr, nullptr), "the place for the model is NULL");
    options.n_plugins = 1;
    wrong(gpunn_model_load(run.c_str(), &options, &model), "plugins is NULL");
    wrong(gpunn_model_options_init(nullptr, 8), "options is NULL");
    wrong(gpunn_model_destroy(nullptr), "the model is NULL");
    wrong(gpunn_model_describe(model, nullptr), "the info is NULL");
    wrong(gpunn_model_input(model, 0, nullptr), "the tensor is NULL");
    wrong(gpunn_model_class(model, 0, nullptr), "the name is NULL");
    wrong(gpunn_model_run(nullptr, 1, &in, 1, &out, 1), "the model is NULL");
    wrong(gpunn_model_run(model, 1, nullptr, 1, &out, 1), "inputs is NULL");
    wrong(gpunn_model_run(model, 1, &in, 1, nullptr, 1), "outputs is NULL");
    wrong(gpunn_model_run(model, 1, nullptr, 0, &out, 1), "one input");
    const gpunn_array nowhere = {"image", nullptr, 784, GPUNN_U8, 0};
    wrong(gpunn_model_run(model, 1, &nowhere, 1, &out, 1), "null");
    wrong(gpunn_model_classify(model, 1, nullptr, 1, nullptr), "the input is NULL");
    wrong(gpunn_model_classify(model, 1, &in, 1, nullptr), "is NULL");
    wrong(gpunn_model_read_image(model, nullptr, image.data(), 784), "the file is NULL");
    wrong(gpunn_model_read_image(model, "x.png", nullptr, 784), "is NULL");
  }
  SECTION("sizes") {
    gpunn_array other = in;
    other.bytes = 784 * 3;  // an image of three channels
    wrong(gpunn_model_run(model, 1, &other, 1, &out, 1), "expected 784 bytes for 1 rows, found 2352");
    other = out;
    other.bytes = 39;
    wrong(gpunn_model_run(model, 1, &in, 1, &other, 1), "expected 40 bytes");
    other = in;
    other.dtype = GPUNN_F32;
    wrong(gpunn_model_run(model, 1, &other, 1, &out, 1), "dtype is another");
    wrong(gpunn_model_run(model, 3, &in, 1, &out, 1), "1 to 2 rows, as max_batch says; found 3");
    wrong(gpunn_model_run(model, 0, &in, 1, &out, 1), "found 0");
    wrong(gpunn_model_run(model, INT64_MIN, &in, 1, &out, 1), "found -9223372036854775808");
    const std::vector<gpunn_array> many(100, out);
    wrong(gpunn_model_run(model, 1, &in, 1, many.data(), 100), "100 output arrays: expected at most");
    gpunn_class_probability found{};
    wrong(gpunn_model_classify(model, 1, &in, 11, &found), "expected 1 to 10");
    wrong(gpunn_model_classify(model, 1, &in, 0, &found), "expected 1 to 10");
    wrong(gpunn_model_read_image(model, (folder.write("a.pgm", "P5 1 1 255\n0")).c_str(), image.data(), 10),
          "an image takes 784 bytes");
    gpunn_model_info info{};
    wrong(gpunn_model_describe(model, &info), "struct_size");
    const char* name = nullptr;
    wrong(gpunn_model_class(model, 10, &name), "no class 10");
    gpunn_model_tensor tensor{};
    tensor.struct_size = sizeof(tensor);
    wrong(gpunn_model_output(model, 2, &tensor), "no output 2");
    gpunn_model_options options = options_of(0);
    gpunn_model* unchanged = model;
    wrong(gpunn_model_load(run.c_str(), &options, &unchanged), "max_batch");
    CHECK(unchanged == model);
    options = options_of(1);
    options.precision = 17;
    wrong(gpunn_model_load(run.c_str(), &options, &unchanged), "precision is 17");
  }
  SECTION("names") {
    gpunn_array other = in;
    other.name = "picture";
    wrong(gpunn_model_run(model, 1, &other, 1, &out, 1), "no input 'picture'");
  }
  SECTION("what is not there") {
    gpunn_model* none = nullptr;
    CHECK(gpunn_model_load((folder / "nothing").c_str(), nullptr, &none) == GPUNN_MISSING);
    CHECK_THAT(text_of_last(), Contains("nothing"));
    CHECK(none == nullptr);
  }
  CHECK(logits == std::vector<float>(30, -1.0F));
  CHECK(gpunn_model_run(model, 1, &in, 1, &out, 1) == GPUNN_DONE);

  CHECK(gpunn_model_destroy(model) == GPUNN_DONE);
  wrong(gpunn_model_destroy(model), "destroyed");
  wrong(gpunn_model_run(model, 1, &in, 1, &out, 1), "destroyed");
  gpunn_model* const next = loaded(run);  // never the handle of before
  CHECK(next != model);
  wrong(gpunn_model_destroy(model), "destroyed");
  CHECK(gpunn_model_destroy(next) == GPUNN_DONE);
}

TEST_CASE("counts and sizes that no memory holds are refused, and nothing is read or written") {
  const TemporaryFolder folder;
  const std::string run = trained(folder.path());
  gpunn_model* model = loaded(run, 2);
  std::vector<uint8_t> image(784);
  std::vector<float> logits(10, -1.0F);
  const gpunn_array in = {"image", image.data(), 784, GPUNN_U8, 0};
  const gpunn_array out = {"logits", logits.data(), 40, GPUNN_F32, 0};
  const auto wrong = [&](gpunn_result result, const std::string& text) {
    CHECK(result == GPUNN_WRONG_USE);
    CHECK_THAT(text_of_last(), Contains(text));
  };

  SECTION("rows whose bytes wrap around") {
    for (const int64_t rows : {INT64_MAX, int64_t{1} << 60, (int64_t{1} << 60) + 1, int64_t{-1}}) {
      gpunn_array many = in, room = out;
      many.bytes = static_cast<uint64_t>(rows) * 784;
      room.bytes = static_cast<uint64_t>(rows) * 40;
      gpunn_class_probability found{};
      wrong(gpunn_model_run(model, rows, &many, 1, &room, 1), "found " + std::to_string(rows));
      wrong(gpunn_model_classify(model, rows, &many, 1, &found), "found " + std::to_string(rows));
    }
  }
  SECTION("rows that end beyond the address space") {
    gpunn_array high = in;
    high.data = reinterpret_cast<void*>(UINTPTR_MAX - 100);  // NOLINT(performance-no-int-to-ptr)
    wrong(gpunn_model_run(model, 1, &high, 1, &out, 1), "do not fit into memory");
    high.name = "logits";
    high.bytes = 40;
    high.dtype = GPUNN_F32;
    high.data = reinterpret_cast<void*>(UINTPTR_MAX - 30);  // NOLINT(performance-no-int-to-ptr)
    wrong(gpunn_model_run(model, 1, &in, 1, &high, 1), "do not fit into memory");
    auto* const found =
        reinterpret_cast<gpunn_class_probability*>(UINTPTR_MAX - 7);  // NOLINT(performance-no-int-to-ptr)
    wrong(gpunn_model_classify(model, 1, &in, 1, found), "do not fit into memory");
  }
  SECTION("counts of lists") {
    std::array<gpunn_array, 2> inputs = {in, in};
    inputs[1].name =
        reinterpret_cast<const char*>(uintptr_t{1});  // NOLINT(performance-no-int-to-ptr): nothing is there
    wrong(gpunn_model_run(model, 1, inputs.data(), 2, &out, 1), "2 input arrays: expected at most 1, as many as the");
    wrong(gpunn_model_run(model, 1, &in, UINT32_MAX, &out, 1),
          "4294967295 input arrays: expected at most 1, as many as the model has");
    wrong(gpunn_model_run(model, 1, &in, 1, &out, UINT32_MAX), "4294967295 output arrays: expected at most");
    gpunn_model_options options = options_of(1);
    const char* const none = "";
    options.plugins = &none;
    options.n_plugins = UINT64_MAX;
    gpunn_model* unchanged = model;
    wrong(gpunn_model_load(run.c_str(), &options, &unchanged), "plugins: expected at most 4096");
    CHECK(unchanged == model);
    wrong(gpunn_model_class(model, UINT32_MAX, nullptr), "NULL");
    const char* name = nullptr;
    wrong(gpunn_model_class(model, UINT32_MAX, &name), "no class 4294967295");
    gpunn_class_probability found{};
    wrong(gpunn_model_classify(model, 1, &in, UINT32_MAX, &found), "expected 1 to 10");
    wrong(gpunn_model_read_image(model, folder.write("a.pgm", "P5 1 1 255\n0").c_str(), image.data(), UINT64_MAX),
          "an image takes 784 bytes");
  }
  SECTION("numbers of options") {
    gpunn_model* unchanged = model;
    for (const int64_t number : {INT64_MAX, INT64_MIN, int64_t{1} << 32, (int64_t{1} << 32) + 1, int64_t{-5}}) {
      for (int64_t gpunn_model_options::*field : {&gpunn_model_options::device, &gpunn_model_options::threads,
                                                  &gpunn_model_options::max_batch, &gpunn_model_options::calls}) {
        gpunn_model_options options = options_of(1);
        options.*field = number;
        wrong(gpunn_model_load(run.c_str(), &options, &unchanged), "found " + std::to_string(number));
      }
    }
    CHECK(unchanged == model);
  }
  SECTION("sizes of structs") {
    gpunn_model_options options = options_of(1);
    for (const uint32_t size : {0U, 3U, UINT32_MAX}) {
      wrong(gpunn_model_options_init(&options, size), "struct_size is " + std::to_string(size));
      gpunn_model_info info{};
      info.struct_size = size;
      wrong(gpunn_model_describe(model, &info), "struct_size is " + std::to_string(size));
      gpunn_model_tensor tensor{};
      tensor.struct_size = size;
      wrong(gpunn_model_input(model, 0, &tensor), "struct_size is " + std::to_string(size));
      gpunn_model_options other = options_of(1);
      other.struct_size = size;
      wrong(gpunn_model_load(run.c_str(), &other, &model), "struct_size is " + std::to_string(size));
    }
    options.struct_size = 12;  // cuts the pointer to the backend's name in two
    gpunn_model* other = nullptr;
    CHECK(gpunn_model_load(run.c_str(), &options, &other) == GPUNN_DONE);
    CHECK(gpunn_model_destroy(other) == GPUNN_DONE);
  }
  CHECK(logits == std::vector<float>(10, -1.0F));
  CHECK(gpunn_model_run(model, 1, &in, 1, &out, 1) == GPUNN_DONE);
  CHECK(gpunn_model_destroy(model) == GPUNN_DONE);
}

TEST_CASE("a call that needs more memory than is free is refused with the figures") {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  CHECK_NOTHROW(inference::require_call_memory(8, kGiB, kGiB));
  CHECK_NOTHROW(inference::require_call_memory(8, kGiB, 0));
  CHECK_THROWS_AS(inference::require_call_memory(8, 3 * kGiB, kGiB), execution::OutOfMemory);
  CHECK_THROWS_WITH(inference::require_call_memory(8, 3 * kGiB, kGiB),
                    Contains("calls of 8 rows need 3.0 GiB of memory, and 1.0 GiB are free"));
}

TEST_CASE("a model without classes is not classified, and nothing is written") {
  const TemporaryFolder folder;
  ModelInfo info;
  info.fields.input().type = {DType::f32, {4}};
  info.fields.input().name = "features";
  const std::string text =
      "task: regression\nmodel: {layers: [linear: {units: 2}]}\ndata: {dataset: arrays, batch_size: 1}\n"
      "backend: cpu\n";
  Network(parse_experiment(text, "numbers"), info).save(folder / "numbers.h5");
  gpunn_model* const model = loaded((folder / "numbers.h5").string());
  std::array<float, 4> row{};
  const gpunn_array in = {nullptr, row.data(), sizeof(row), GPUNN_F32, 0};
  gpunn_class_probability found{.index = 7, .name = nullptr, .probability = 0};
  CHECK(gpunn_model_classify(model, 1, &in, 1, &found) == GPUNN_WRONG_USE);
  CHECK_THAT(text_of_last(), Contains("its task is regression: gpunn_model_run gives its outputs"));
  CHECK(found.index == 7);
  CHECK(gpunn_model_destroy(model) == GPUNN_DONE);
}

TEST_CASE("a handle is destroyed while threads use it, and each thread has its own last error") {
  const TemporaryFolder folder;
  gpunn_model* const model = loaded(trained(folder.path()), 1);
  std::vector<std::thread> threads;
  std::array<std::string, 4> errors;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    threads.emplace_back([&, i] {
      std::vector<uint8_t> image(784);
      std::vector<float> logits(10);
      const gpunn_array in = {nullptr, image.data(), 784, GPUNN_U8, 0};
      const gpunn_array out = {nullptr, logits.data(), 40, GPUNN_F32, 0};
      while (gpunn_model_run(model, 1, &in, 1, &out, 1) == GPUNN_DONE) {
      }
      errors[i] = gpunn_last_error();
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(gpunn_model_destroy(model) == GPUNN_DONE);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK_THAT(error, Contains("destroyed"));
}
